/* The builders of mlx5dv_wr_post(3): layouts of indirect keys, copies in memory, and what is refused. */
#include <string.h>

#include "base/container.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "mlx5/mkey_layout.h"
#include "mlx5/part.h"
#include "mlx5/raw.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/send/qp_ex.h"

static struct mlx5_part *part_of(struct mlx5dv_qp_ex *builders)
{
    return container_of(builders, struct mlx5_part, builders);
}

static struct qp *qp_of_builders(struct mlx5dv_qp_ex *builders)
{
    return part_of(builders)->qp;
}

/* --- layouts of indirect keys */

/* Begins to configure a key: the layout follows in the work request itself, so inline data must be asked for. */
static struct send_wqe *begin_layout(struct mlx5dv_qp_ex *builders, const struct mlx5dv_mkey *mkey)
{
    struct qp *qp = qp_of_builders(builders);
    part_of(builders)->setters = 0;
    if (!(qp->extended.wr_flags & IBV_SEND_INLINE))
        return qp_ex_spoil(qp, REASON_MLX5_LACKED), NULL;
    struct send_wqe *work = qp_ex_begin_vendor(qp, WORK_VENDOR_CONFIGURE);
    if (work)
        mkey_layout_begin(work, mkey->lkey);
    return work;
}

static void put_list(struct qp *qp, struct send_wqe *work, uint16_t count, const struct ibv_sge *list)
{
    if (work && !mkey_layout_put_list(work, qp->cap.max_inline_data, count, list))
        qp_ex_spoil(qp, REASON_MKEY_LAYOUT);
}

static void put_interleaved(struct qp *qp, struct send_wqe *work, uint32_t rounds, uint16_t count,
                            const struct mlx5dv_mr_interleaved *list)
{
    if (work && !mkey_layout_put_interleaved(work, qp->cap.max_inline_data, rounds, count, list))
        qp_ex_spoil(qp, REASON_MKEY_LAYOUT);
}

static void wr_mr_list(struct mlx5dv_qp_ex *builders, struct mlx5dv_mkey *mkey, uint32_t access_flags,
                       uint16_t num_sges, struct ibv_sge *list)
{
    struct send_wqe *work = begin_layout(builders, mkey);
    if (work)
        work->owner_value = access_flags;
    put_list(qp_of_builders(builders), work, num_sges, list);
}

static void wr_mr_interleaved(struct mlx5dv_qp_ex *builders, struct mlx5dv_mkey *mkey, uint32_t access_flags,
                              uint32_t rounds, uint16_t num_interleaved, struct mlx5dv_mr_interleaved *list)
{
    struct send_wqe *work = begin_layout(builders, mkey);
    if (work)
        work->owner_value = access_flags;
    put_interleaved(qp_of_builders(builders), work, rounds, num_interleaved, list);
}

/* Where setters are missing, the work fails in its turn, as the key would have no pieces. */
static void wr_mkey_configure(struct mlx5dv_qp_ex *builders, struct mlx5dv_mkey *mkey, uint8_t num_setters,
                              struct mlx5dv_mkey_conf_attr *attr)
{
    struct send_wqe *work = begin_layout(builders, mkey);
    if (!work)
        return;
    if (attr->comp_mask || attr->conf_flags)
        return qp_ex_spoil(qp_of_builders(builders), REASON_MLX5_LACKED);
    part_of(builders)->setters = num_setters;
}

/* The work request to which a setter belongs; NULL: there is none. */
static struct send_wqe *take_setter(struct mlx5dv_qp_ex *builders)
{
    struct mlx5_part *part = part_of(builders);
    struct send_wqe *work = part->qp->batch.work;
    if (!work || work->opcode != WORK_VENDOR_CONFIGURE || !part->setters)
        return qp_ex_spoil(part->qp, REASON_MKEY_LAYOUT), NULL;
    part->setters--;
    return work;
}

static void wr_set_mkey_access_flags(struct mlx5dv_qp_ex *builders, uint32_t access_flags)
{
    struct send_wqe *work = take_setter(builders);
    if (work)
        work->owner_value = access_flags;
}

static void wr_set_mkey_layout_list(struct mlx5dv_qp_ex *builders, uint16_t num_sges, const struct ibv_sge *list)
{
    put_list(qp_of_builders(builders), take_setter(builders), num_sges, list);
}

static void wr_set_mkey_layout_interleaved(struct mlx5dv_qp_ex *builders, uint32_t rounds, uint16_t num_interleaved,
                                           const struct mlx5dv_mr_interleaved *list)
{
    put_interleaved(qp_of_builders(builders), take_setter(builders), rounds, num_interleaved, list);
}

/* --- copies, and work in the adapter's form */

/* The copy is one step, and has the fields of an RDMA operation for its target; the source's key is in `immediate`, and
 * its address in `compare_or_add`. */
static void wr_memcpy(struct mlx5dv_qp_ex *builders, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey,
                      uint64_t src_addr, size_t length)
{
    struct qp *qp = qp_of_builders(builders);
    if (length > MLX5_MEMCPY_MOST)
        return qp_ex_spoil(qp, REASON_MESSAGE_TOO_LONG);
    struct send_wqe *work = qp_ex_begin_vendor(qp, WORK_VENDOR_COPY);
    if (!work)
        return;
    work->rkey = dest_lkey;
    work->remote_address = dest_addr;
    work->immediate = src_lkey;
    work->compare_or_add = src_addr;
    work->length = (uint32_t)length;
}

static void wr_raw_wqe(struct mlx5dv_qp_ex *builders, const void *wqe)
{
    raw_build(qp_of_builders(builders), wqe);
}

/* An initiator without streams ignores the number of one, as an adapter does: perftest names 0. */
static void wr_set_dc_addr_stream(struct mlx5dv_qp_ex *builders, struct ibv_ah *ah, uint32_t remote_dctn,
                                  uint64_t remote_dc_key, uint16_t stream_id)
{
    struct qp *qp = qp_of_builders(builders);
    if (qp->traits & QP_ADDRESSED)
        dci_set_address(qp, ah, remote_dctn, remote_dc_key, stream_id);
    else
        qp_ex_spoil(qp, REASON_MLX5_LACKED);
}

static void wr_set_dc_addr(struct mlx5dv_qp_ex *builders, struct ibv_ah *ah, uint32_t remote_dctn,
                           uint64_t remote_dc_key)
{
    wr_set_dc_addr_stream(builders, ah, remote_dctn, remote_dc_key, 0);
}

/* --- what the device does not have */

static void wr_set_mkey_sig_block(struct mlx5dv_qp_ex *builders, const struct mlx5dv_sig_block_attr *attr)
{
    qp_ex_spoil(qp_of_builders(builders), REASON_MLX5_LACKED);
}

static void wr_set_mkey_crypto(struct mlx5dv_qp_ex *builders, const struct mlx5dv_crypto_attr *attr)
{
    qp_ex_spoil(qp_of_builders(builders), REASON_MLX5_LACKED);
}

void mlx5_fill_builders(struct mlx5dv_qp_ex *builders)
{
    *builders = (struct mlx5dv_qp_ex){
        .wr_set_dc_addr = wr_set_dc_addr,
        .wr_mr_interleaved = wr_mr_interleaved,
        .wr_mr_list = wr_mr_list,
        .wr_mkey_configure = wr_mkey_configure,
        .wr_set_mkey_access_flags = wr_set_mkey_access_flags,
        .wr_set_mkey_layout_list = wr_set_mkey_layout_list,
        .wr_set_mkey_layout_interleaved = wr_set_mkey_layout_interleaved,
        .wr_set_mkey_sig_block = wr_set_mkey_sig_block,
        .wr_raw_wqe = wr_raw_wqe,
        .wr_set_dc_addr_stream = wr_set_dc_addr_stream,
        .wr_memcpy = wr_memcpy,
        .wr_set_mkey_crypto = wr_set_mkey_crypto,
    };
}
