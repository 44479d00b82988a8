/* Indirect keys (mlx5dv_create_mkey(3)), and the work of the queue pairs that configures them or copies memory. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/container.h"
#include "base/mapping.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "mlx5/mkey_layout.h"
#include "mlx5/mlx5.h"
#include "mlx5/part.h"
#include "verbs/create/mr_register.h"
#include "verbs/memory/indirect.h"
#include "verbs/object/domain.h"
#include "verbs/object/process_objects.h"
#include "verbs/qp/qp_memory.h"
#include "wire/payload.h"

struct mkey {
    struct mlx5dv_mkey shown;
    struct ibv_mr *mr;
    struct indirect indirect;
};

/* --- keys */

static int check_mkey(const struct mlx5dv_mkey_init_attr *attr)
{
    const uint32_t built = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE;
    const uint32_t known = built | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO |
                           MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG;
    if (!(attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT) || attr->create_flags & ~known)
        return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "create_flags are 0x%x", attr->create_flags);
    if (attr->create_flags & ~built)
        return mlx5_lacks("keys with signatures, encryption or tags");
    return 0;
}

/* Registers addresses that are never mapped, and cover no bytes until the key is configured. */
static struct ibv_mr *reserve(struct ibv_pd *pd, struct indirect *indirect)
{
    const size_t length = INDIRECT_BYTES;
    void *addresses = mapping_make(length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addresses == MAP_FAILED)
        return NULL;
    const struct mr_source source = {.memory = addresses,
                                     .length = length,
                                     .kind = REGION_INDIRECT,
                                     .foreign = &indirect->foreign,
                                     .mapped = addresses,
                                     .mapped_length = length};
    struct ibv_mr *mr = mr_register_from(pd, &source);
    if (!mr)
        munmap(addresses, length);
    return mr;
}

static int fill_mkey(struct mkey *mkey, const struct mlx5dv_mkey_init_attr *attr)
{
    struct indirect *indirect = &mkey->indirect;
    indirect->most = attr->max_entries;
    indirect->may_be_invalidated_by_peer = attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE;
    indirect->keys = process_objects(mlx5_context(attr->pd->context)->process)->keys;
    if (!indirect_begin(indirect))
        return ENOMEM;
    mkey->mr = reserve(attr->pd, indirect);
    if (!mkey->mr)
        return errno;
    indirect->region = &mr_of(mkey->mr)->region;
    indirect->region->length = 0;
    mkey->shown = (struct mlx5dv_mkey){mkey->mr->lkey, mkey->mr->rkey};
    return 0;
}

struct mlx5dv_mkey *own_mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
    int error = mlx5_check();
    if (!error)
        error = check_mkey(attr);
    if (error)
        return refused_null(error);
    struct mkey *mkey = calloc(1, sizeof *mkey + attr->max_entries * sizeof(struct indirect_piece));
    if (!mkey)
        return NULL;
    error = fill_mkey(mkey, attr);
    if (!error)
        return &mkey->shown;
    free(mkey);
    return refused_null(error);
}

int own_mlx5dv_destroy_mkey(struct mlx5dv_mkey *shown)
{
    struct mkey *mkey = container_of(shown, struct mkey, shown);
    int error = mlx5_check();
    if (!error)
        error = mr_deregister(mkey->mr);
    if (!error)
        free(mkey);
    return error;
}

/* Only signatures find errors, which no key has. */
int own__mlx5dv_mkey_check(struct mlx5dv_mkey *mkey, struct mlx5dv_mkey_err *err, size_t size)
{
    int error = mlx5_check();
    if (!error)
        err->err_type = MLX5DV_MKEY_NO_ERR;
    return error;
}

/* --- work */

static enum reason configure(struct qp *qp, const struct send_wqe *work)
{
    struct indirect *indirect = indirect_find(process_objects(qp->process)->keys, work->rkey);
    struct indirect_layout layout = mkey_layout_of(work);
    if (!indirect || indirect->region->pd != qp->memory.pd)
        return REASON_MKEY_UNKNOWN;
    if (!layout.count || layout.count > indirect->most || indirect_length(&layout) > INDIRECT_BYTES)
        return REASON_MKEY_LAYOUT;
    indirect_configure(indirect, &layout, work->owner_value);
    return REASON_NONE;
}

static enum reason copy_memory(struct qp *qp, const struct send_wqe *work)
{
    struct iovec to, from;
    struct ibv_sge sink = {work->remote_address, work->length, work->rkey};
    struct ibv_sge source = {work->compare_or_add, work->length, work->immediate};
    if (!work->length)
        return REASON_NONE;
    enum reason reason = mr_local(qp, qp->memory.pd, &source, 0, &from);
    if (!reason)
        reason = mr_local(qp, qp->memory.pd, &sink, IBV_ACCESS_LOCAL_WRITE, &to);
    const struct payload payload = {work->length, 1, &from};
    if (!reason && !payload_copy(&payload, 0, &to, 1))
        reason = REASON_LOCAL_RANGE;
    return reason;
}

enum ibv_wc_status mlx5_run(struct qp *qp, const struct send_wqe *work, enum reason *reason)
{
    *reason = work->opcode == WORK_VENDOR_MALFORMED ? REASON_RAW_WQE : REASON_NONE;
    if (work->opcode == WORK_VENDOR_NOTHING || *reason)
        return *reason ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS;
    bool copies = work->opcode == WORK_VENDOR_COPY;
    *reason = copies ? copy_memory(qp, work) : configure(qp, work);
    if (!*reason)
        return IBV_WC_SUCCESS;
    return copies ? IBV_WC_LOC_PROT_ERR : IBV_WC_MW_BIND_ERR;
}
