#include "verbs/kinds/ethernet/qp_raw.h"

#include <errno.h>
#include <stdlib.h>

#include "transport/raw_frame.h"
#include "verbs/kinds/ethernet/rwq_ind_table.h"
#include "verbs/qp/wq.h"
#include "verbs/queue/receive_queue.h"

enum {
    RAW_FLAGS = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING,
    SPREADS = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
};

static uint32_t create_flags(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
}

/* What a queue pair of this type may ask for; one that can't join groups needs to block nothing. */
static uint32_t flags_offered(enum ibv_qp_type type)
{
    return type == IBV_QPT_RAW_PACKET ? RAW_FLAGS : type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
}

static uint32_t max_tso_header(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? attr->max_tso_header : 0;
}

bool qp_raw_spreads(const struct ibv_qp_init_attr_ex *attr)
{
    return (attr->comp_mask & SPREADS) && attr->qp_type == IBV_QPT_RAW_PACKET;
}

static enum reason refuse_spread(const struct ibv_qp_init_attr_ex *attr)
{
    struct rss_hash hash;
    const struct ibv_qp_cap *cap = &attr->cap;
    if ((attr->comp_mask & SPREADS) != SPREADS || !attr->rwq_ind_tbl || attr->srq || cap->max_send_wr ||
        cap->max_recv_wr || cap->max_inline_data)
        return REASON_RAW_QP_ATTRIBUTES;
    if (!attr->pd || attr->rwq_ind_tbl->context != attr->pd->context)
        return REASON_RAW_QP_ATTRIBUTES;
    return rss_configure(&hash, &attr->rx_hash_conf);
}

enum reason qp_raw_refuse(const struct ibv_qp_init_attr_ex *attr, int *error)
{
    bool raw = attr->qp_type == IBV_QPT_RAW_PACKET;
    *error = EOPNOTSUPP;
    if (create_flags(attr) & ~flags_offered(attr->qp_type))
        return REASON_RAW_CREATE_FLAGS;
    *error = EINVAL;
    if (attr->comp_mask & QP_RAW_INIT_MASK && !raw)
        return REASON_RAW_QP_ATTRIBUTES;
    if (max_tso_header(attr) > RAW_TSO_HEADER_MAX)
        return REASON_RAW_TSO_SIZE;
    if (!qp_raw_spreads(attr))
        return REASON_NONE;
    enum reason reason = refuse_spread(attr);
    if (reason)
        return reason;
    *error = ENOENT;
    const struct ibv_rwq_ind_table *table = attr->rwq_ind_tbl;
    return object_is_known(&((const struct ind_table *)table)->object, (uint32_t)table->ind_tbl_handle) ? REASON_NONE
                                                                                                        : REASON_HANDLE;
}

int qp_raw_fill(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    qp->create_flags = create_flags(attr);
    qp->ethernet.max_tso_header = max_tso_header(attr);
    if (!qp_raw_spreads(attr))
        return 0;
    qp->ethernet.spread = calloc(1, sizeof *qp->ethernet.spread);
    if (!qp->ethernet.spread)
        return ENOMEM;
    qp->ethernet.spread->table = (struct ind_table *)attr->rwq_ind_tbl;
    rss_configure(&qp->ethernet.spread->hash, &attr->rx_hash_conf);
    return 0;
}

void qp_raw_release(struct qp *qp)
{
    free(qp->ethernet.spread);
}

unsigned qp_raw_options(const struct qp *qp)
{
    return (qp->create_flags & IBV_QP_CREATE_CVLAN_STRIPPING ? RAW_STRIP_VLAN : 0) |
           (qp->create_flags & IBV_QP_CREATE_SCATTER_FCS ? RAW_STORE_FRAME_CHECK : 0);
}
