/* Making queue pairs, queues and memory by libmlx5: mlx5dv_create_qp(3) and its kin. */
#include <errno.h>
#include <stdlib.h>

#include "config/device.h"
#include "config/settings.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "mlx5/mlx5.h"
#include "mlx5/part.h"
#include "mlx5/queues/cq_memory.h"
#include "profile/profile.h"
#include "verbs/create/cq_create.h"
#include "verbs/create/dm_allocate.h"
#include "verbs/create/mr_special.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/kinds/ethernet/wq_create.h"
#include "verbs/life/qp_create.h"
#include "verbs/qp/kind.h"

/* --- queue pairs */

enum {
    QP_MASKS = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC |
               MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
    QP_FLAGS = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
               MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC | MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
               MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE | MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE |
               MLX5DV_QP_CREATE_SIG_PIPELINING | MLX5DV_QP_CREATE_OOO_DP,
    SCATTER_FLAGS = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE,
    QP_BUILDERS = MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE |
                  MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MEMCPY,
    LAYOUT_BUILDERS = MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
};

static bool may_be_out_of_order(enum ibv_qp_type type)
{
    const struct qp_kind *kind = qp_kind_find(type);
    bool may = qp_type_is_of_driver(type) || (kind && !(kind->traits & QP_ETHERNET));
    return may && mlx5_ooo_most();
}

/* Flags without an effect here are accepted: data are never scattered into completions, and packets of a queue pair
 * take one way, so that receives are used in order, which out-of-order queue pairs may do. */
static int check_flags(enum ibv_qp_type type, uint32_t flags)
{
    if (flags & ~(uint32_t)QP_FLAGS)
        return mlx5_refuse_bits("create_flags", flags);
    if ((flags & SCATTER_FLAGS) == SCATTER_FLAGS)
        return mlx5_refuse_together("create_flags both allow and disable scattering into completions");
    if (flags & MLX5DV_QP_CREATE_SIG_PIPELINING)
        return mlx5_lacks("MLX5DV_QP_CREATE_SIG_PIPELINING");
    if (flags & MLX5DV_QP_CREATE_TUNNEL_OFFLOADS)
        return mlx5_lacks("MLX5DV_QP_CREATE_TUNNEL_OFFLOADS");
    if (flags & MLX5DV_QP_CREATE_OOO_DP && !may_be_out_of_order(type))
        return mlx5_lacks("MLX5DV_QP_CREATE_OOO_DP");
    return 0;
}

static int check_qp(const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *mlx5)
{
    bool dc = mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC, driver = qp_type_is_of_driver(attr->qp_type);
    uint64_t builders = mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS ? mlx5->send_ops_flags : 0;
    if (mlx5->comp_mask & ~(uint64_t)QP_MASKS)
        return mlx5_refuse_bits("comp_mask", mlx5->comp_mask);
    if (dc != driver)
        return mlx5_refuse_together(dc ? "comp_mask has DC, and qp_type is not that of drivers"
                                       : "qp_type is that of drivers, and comp_mask has no DC");
    int error =
        mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS ? check_flags(attr->qp_type, mlx5->create_flags) : 0;
    if (!error && builders & ~(uint64_t)QP_BUILDERS)
        error = refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "send_ops_flags are 0x%llx", (unsigned long long)builders);
    return error;
}

/* Layouts of indirect keys stand in the work request, so that a queue pair with their builders has room for them. The
 * queue pair needs the builders of the verbs for the batch. */
static struct ibv_qp *make_with_builders(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                         uint64_t builders)
{
    const struct ibv_qp_cap before = attr->cap;
    const uint32_t asked = attr->comp_mask;
    uint32_t most = mlx5_context(context)->device->limits.max_inline, room = MLX5_UMR_INLINE;
    if (builders & LAYOUT_BUILDERS && attr->cap.max_inline_data < room)
        attr->cap.max_inline_data = room < most ? room : most;
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr->send_ops_flags = 0;
    }
    struct ibv_qp *qp = qp_create(context, attr);
    attr->comp_mask = asked;
    if (!qp)
        attr->cap = before;
    return qp;
}

static int check_dynamic(const struct mlx5dv_qp_init_attr *mlx5)
{
    const struct mlx5dv_dc_init_attr *dc = &mlx5->dc_init_attr;
    bool streams = mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
    if (dc->dc_type != MLX5DV_DCTYPE_DCT && dc->dc_type != MLX5DV_DCTYPE_DCI)
        return mlx5_refuse_bits("dc_type", dc->dc_type);
    if (streams && dc->dc_type == MLX5DV_DCTYPE_DCT)
        return mlx5_refuse_together("a target has no streams");
    if (streams &&
        (dc->dci_streams.log_num_concurent > DC_STREAMS_LOG || dc->dci_streams.log_num_errored > DC_STREAMS_LOG))
        return mlx5_refuse_together("dci_streams are more than dci_streams_caps allow");
    return 0;
}

/* Makes a dynamically connected queue pair. An initiator's work is built, as only builders name a receiver. */
static struct ibv_qp *make_dynamic(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                   const struct mlx5dv_qp_init_attr *mlx5)
{
    const uint32_t asked = attr->comp_mask;
    struct ibv_srq *const srq = attr->srq;
    bool target = mlx5->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
    int error = check_dynamic(mlx5);
    if (error)
        return refused_null(error);
    if (!target) {
        attr->srq = NULL; /* adapters ignore it, and perftest gives one */
        attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr->send_ops_flags = asked & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
    }
    struct ibv_qp *qp = qp_create_of(context, qp_kind_find_of_driver(target ? "DCT" : "DCI"), attr);
    attr->comp_mask = asked;
    attr->srq = srq;
    if (qp && target)
        dct_set_key(qp, mlx5->dc_init_attr.dct_access_key);
    else if (qp && mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)
        dci_make_streams(qp, mlx5->dc_init_attr.dci_streams.log_num_errored);
    return qp;
}

struct ibv_qp *own_mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                    struct mlx5dv_qp_init_attr *mlx5)
{
    struct mlx5dv_qp_init_attr none = {0};
    int error = mlx5_check();
    if (!mlx5)
        mlx5 = &none;
    if (!error)
        error = check_qp(attr, mlx5);
    if (error)
        return refused_null(error);
    if (mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC)
        return make_dynamic(context, attr, mlx5);
    if (mlx5->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS)
        return make_with_builders(context, attr, mlx5->send_ops_flags);
    return qp_create(context, attr);
}

/* --- completion queues */

/* The variable of rdma-core's library, which says how large entries are. */
long mlx5_entry_size(const struct mlx5dv_cq_init_attr *mlx5)
{
    enum { USUAL = 64 };
    if (mlx5 && mlx5->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)
        return mlx5->cqe_size;
    const char *wanted = secure_getenv("MLX5_CQE_SIZE");
    return wanted ? strtol(wanted, NULL, 10) : USUAL;
}

static int check_cq(const struct mlx5dv_cq_init_attr *mlx5)
{
    enum { SHORT = 64, LONG = 128 };
    const uint64_t known =
        MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS | MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    uint32_t flags = mlx5 && mlx5->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS ? mlx5->flags : 0;
    long size = mlx5_entry_size(mlx5);
    if (mlx5 && mlx5->comp_mask & ~known)
        return mlx5_refuse_bits("comp_mask", mlx5->comp_mask);
    if (size != SHORT && size != LONG)
        return refuse(EINVAL, REASON_MLX5_EXCLUDED, "entries of completion queues have 64 or 128 bytes, and not %ld",
                      size);
    if (mlx5 && mlx5->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE)
        return mlx5_refuse_together("the device compresses no entries (cqe_comp_caps)");
    if (flags & ~(uint32_t)MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD)
        return mlx5_refuse_bits("flags", flags);
    if (flags && size != LONG)
        return mlx5_refuse_together("only entries of 128 bytes are padded");
    return 0;
}

struct ibv_cq_ex *own_mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
                                       struct mlx5dv_cq_init_attr *mlx5)
{
    int error = mlx5_check();
    if (!error)
        error = check_cq(mlx5);
    struct ibv_cq_ex *cq = error ? refused_null(error) : cq_create(context, attr);
    if (cq)
        ((struct cq *)cq)->vendor[CQ_VENDOR_SIZE] = (uint64_t)mlx5_entry_size(mlx5);
    return cq;
}

/* --- others */

struct ibv_wq *own_mlx5dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr,
                                    struct mlx5dv_wq_init_attr *mlx5)
{
    int error = mlx5_check();
    if (!error && mlx5 && mlx5->comp_mask & ~(uint64_t)MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ)
        error = mlx5_refuse_bits("comp_mask", mlx5->comp_mask);
    if (!error && mlx5 && mlx5->comp_mask)
        error = mlx5_lacks("striding receive queues");
    return error ? refused_null(error) : wq_create(context, attr);
}

struct ibv_dm *own_mlx5dv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr,
                                   struct mlx5dv_alloc_dm_attr *mlx5)
{
    int error = mlx5_check();
    if (!error && mlx5->type != MLX5DV_DM_TYPE_MEMIC)
        error = refuse(EOPNOTSUPP, REASON_MLX5_LACKED, "device memory of type %u", mlx5->type);
    if (!error && mlx5->comp_mask)
        error = mlx5_refuse_bits("comp_mask", mlx5->comp_mask);
    return error ? refused_null(error) : dm_allocate(context, attr);
}

struct ibv_mr *own_mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access, int mlx5_access)
{
    int error = mlx5_check();
    if (!error && mlx5_access & ~MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT)
        error = mlx5_refuse_bits("mlx5_access", (uint32_t)mlx5_access);
    if (!error && mlx5_access)
        error = refuse_offer(EOPNOTSUPP, REASON_MLX5_LACKED, "data direct");
    return error ? refused_null(error) : mr_special_register_fd(pd, offset, length, iova, fd, (unsigned)access, NULL);
}
