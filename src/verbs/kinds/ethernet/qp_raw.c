#include "verbs/kinds/ethernet/qp_raw.h"

#include <errno.h>
#include <stdlib.h>

#include "events/refusal.h"
#include "transport/raw_frame.h"
#include "verbs/kinds/ethernet/rwq_ind_table.h"
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/transitions.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/send/operations.h"

enum {
    RAW_FLAGS = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING,
    SPREADS = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
};

static uint32_t max_tso_header(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? attr->max_tso_header : 0;
}

/* Returns true if the queue pair has work queues instead of a send and a receive queue. */
static bool spreads(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->comp_mask & SPREADS;
}

static int refuse_spread(const struct ibv_qp_init_attr_ex *attr)
{
    struct rss_hash hash;
    const struct ibv_qp_cap *cap = &attr->cap;
    if ((attr->comp_mask & SPREADS) != SPREADS)
        return refuse_because(EINVAL, REASON_RAW_QP_ATTRIBUTES, "comp_mask lacks IBV_QP_INIT_ATTR_%s",
                              attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE ? "RX_HASH" : "IND_TABLE");
    if (!attr->rwq_ind_tbl)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "rwq_ind_tbl is NULL");
    if (attr->srq || cap->max_send_wr || cap->max_recv_wr || cap->max_inline_data)
        return refuse(EINVAL, REASON_RSS_QUEUES, "srq is %p, max_send_wr %u, max_recv_wr %u, max_inline_data %u",
                      (void *)attr->srq, cap->max_send_wr, cap->max_recv_wr, cap->max_inline_data);
    if (!attr->pd)
        return refuse(EINVAL, REASON_QP_NO_PD, "pd is NULL");
    if (attr->rwq_ind_tbl->context != attr->pd->context)
        return refuse(EINVAL, REASON_OTHER_CONTEXT, "the indirection table");
    enum reason reason = rss_configure(&hash, &attr->rx_hash_conf);
    return reason ? refuse(EINVAL, reason, "rx_hash_function 0x%x, rx_hash_key_len %u, rx_hash_fields_mask 0x%llx",
                           attr->rx_hash_conf.rx_hash_function, attr->rx_hash_conf.rx_hash_key_len,
                           (unsigned long long)attr->rx_hash_conf.rx_hash_fields_mask)
                  : 0;
}

static int qp_raw_refuse(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
    if (max_tso_header(attr) > RAW_TSO_HEADER_MAX)
        return refuse_because(EINVAL, REASON_RAW_TSO_SIZE, "max_tso_header is %u, and the device takes up to %u bytes",
                              max_tso_header(attr), RAW_TSO_HEADER_MAX);
    int error = spreads(attr) ? refuse_spread(attr) : 0;
    if (error || !spreads(attr))
        return error;
    const struct ibv_rwq_ind_table *table = attr->rwq_ind_tbl;
    bool known = object_is_known(&((const struct ind_table *)table)->object, (uint32_t)table->ind_tbl_handle);
    return known ? 0 : refused(ENOENT);
}

static int qp_raw_fill(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    qp->ethernet.max_tso_header = max_tso_header(attr);
    if (!spreads(attr))
        return 0;
    qp->ethernet.spread = calloc(1, sizeof *qp->ethernet.spread);
    if (!qp->ethernet.spread)
        return ENOMEM;
    qp->ethernet.spread->table = (struct ind_table *)attr->rwq_ind_tbl;
    qp->uses.table = &qp->ethernet.spread->table->object;
    rss_configure(&qp->ethernet.spread->hash, &attr->rx_hash_conf);
    return 0;
}

static void qp_raw_release(struct qp *qp)
{
    free(qp->ethernet.spread);
}

static unsigned qp_raw_options(const struct qp *qp)
{
    return (qp->create_flags & IBV_QP_CREATE_CVLAN_STRIPPING ? RAW_STRIP_VLAN : 0) |
           (qp->create_flags & IBV_QP_CREATE_SCATTER_FCS ? RAW_STORE_FRAME_CHECK : 0);
}

static void qp_raw_initialize_engine(struct qp *qp, const struct send_queue *queue)
{
    engine_initialize_raw(qp_engine(qp), qp_owner(qp), queue);
    engine_configure(qp_engine(qp), &(struct engine_settings){.options = qp_raw_options(qp)});
}

static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, IBV_QP_PORT, 0),
    MAY(INIT, INIT, 0, 0),
    MAY(INIT, RTR, 0, 0),
    MAY(RTR, RTS, 0, IBV_QP_RATE_LIMIT),
    MAY(RTS, RTS, 0, IBV_QP_RATE_LIMIT),
    MAY(RTS, SQD, 0, 0),
    MAY(SQD, RTS, 0, 0),
    MAY(SQD, SQD, 0, 0),
    MAY(SQE, RTS, 0, 0),
};

const struct qp_kind raw_kind = {
    .type = IBV_QPT_RAW_PACKET,
    .name = "RAW_PACKET",
    .service = TRAFFIC_NO_SERVICE,
    .traits = QP_TRAITS_RAW_PACKET,
    .opcodes = OPCODES_RAW,
    .send_flags = SEND_FLAGS | IBV_SEND_IP_CSUM,
    .builders = BUILDERS_RAW,
    .create_flags = RAW_FLAGS,
    .init_mask = IBV_QP_INIT_ATTR_MAX_TSO_HEADER | SPREADS,
    .transitions = transitions,
    .owner = &qp_owner_operations,
    .endpoint = &qp_endpoint_operations,
    .refuse = qp_raw_refuse,
    .fill = qp_raw_fill,
    .initialize_engine = qp_raw_initialize_engine,
    .release = qp_raw_release,
    .transmit = qp_raw_transmit,
};
