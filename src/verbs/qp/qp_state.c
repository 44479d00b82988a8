#include "verbs/qp/qp_state.h"

enum {
    STATES = IBV_QPS_ERR + 1,
    TYPES = IBV_QPT_XRC_RECV + 1,

    /* what transitions bring along, by the part of the queue pair that needs it */
    DATAGRAM = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
    CONNECTED = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    RESPONDER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    RETRY = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
    REQUESTER = RETRY | IBV_QP_MAX_QP_RD_ATOMIC,

    /* what may change while it runs */
    RUNNING_DATAGRAM = IBV_QP_CUR_STATE | IBV_QP_QKEY,
    RUNNING = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
    RUNNING_RESPONDER = RUNNING | IBV_QP_MIN_RNR_TIMER,
    /* and while its send queue is drained */
    DRAINED = IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE,
};

#define MAY(from, to, type, required, optional)                                                                        \
    [IBV_QPS_##from][IBV_QPS_##to][IBV_QPT_##type] = {true, required, optional}

/* IBV_QP_STATE itself, and the transitions to RESET and ERR, which are alike everywhere, are not in the table. */
static const struct qp_transition table[STATES][STATES][TYPES] = {
    MAY(RESET, INIT, RC, CONNECTED, 0),
    MAY(RESET, INIT, UC, CONNECTED, 0),
    MAY(RESET, INIT, UD, DATAGRAM, 0),
    MAY(RESET, INIT, XRC_SEND, CONNECTED, 0),
    MAY(RESET, INIT, XRC_RECV, CONNECTED, 0),
    MAY(RESET, INIT, RAW_PACKET, IBV_QP_PORT, 0),

    MAY(INIT, INIT, RC, 0, CONNECTED),
    MAY(INIT, INIT, UC, 0, CONNECTED),
    MAY(INIT, INIT, UD, 0, DATAGRAM),
    MAY(INIT, INIT, XRC_SEND, 0, CONNECTED),
    MAY(INIT, INIT, XRC_RECV, 0, CONNECTED),
    MAY(INIT, INIT, RAW_PACKET, 0, 0),

    MAY(INIT, RTR, RC, PATH | RESPONDER, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
    MAY(INIT, RTR, UC, PATH, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
    MAY(INIT, RTR, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
    MAY(INIT, RTR, XRC_SEND, PATH, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
    MAY(INIT, RTR, XRC_RECV, PATH | RESPONDER, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
    MAY(INIT, RTR, RAW_PACKET, 0, 0),

    MAY(RTR, RTS, RC, REQUESTER | IBV_QP_SQ_PSN, RUNNING_RESPONDER),
    MAY(RTR, RTS, UC, IBV_QP_SQ_PSN, RUNNING),
    MAY(RTR, RTS, UD, IBV_QP_SQ_PSN, RUNNING_DATAGRAM),
    MAY(RTR, RTS, XRC_SEND, REQUESTER | IBV_QP_SQ_PSN, RUNNING),
    MAY(RTR, RTS, XRC_RECV, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, RUNNING_RESPONDER),
    MAY(RTR, RTS, RAW_PACKET, 0, IBV_QP_RATE_LIMIT),

    MAY(RTS, RTS, RC, 0, RUNNING_RESPONDER),
    MAY(RTS, RTS, UC, 0, RUNNING),
    MAY(RTS, RTS, UD, 0, RUNNING_DATAGRAM),
    MAY(RTS, RTS, XRC_SEND, 0, RUNNING),
    MAY(RTS, RTS, XRC_RECV, 0, RUNNING_RESPONDER),
    MAY(RTS, RTS, RAW_PACKET, 0, IBV_QP_RATE_LIMIT),

    MAY(RTS, SQD, RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(RTS, SQD, UC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(RTS, SQD, UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(RTS, SQD, XRC_SEND, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(RTS, SQD, XRC_RECV, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(RTS, SQD, RAW_PACKET, 0, 0),

    MAY(SQD, RTS, RC, 0, RUNNING_RESPONDER),
    MAY(SQD, RTS, UC, 0, RUNNING),
    MAY(SQD, RTS, UD, 0, RUNNING_DATAGRAM),
    MAY(SQD, RTS, XRC_SEND, 0, RUNNING),
    MAY(SQD, RTS, XRC_RECV, 0, RUNNING_RESPONDER),
    MAY(SQD, RTS, RAW_PACKET, 0, 0),

    MAY(SQD, SQD, RC, 0, DRAINED | IBV_QP_PORT | REQUESTER | RESPONDER),
    MAY(SQD, SQD, UC, 0, DRAINED),
    MAY(SQD, SQD, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
    MAY(SQD, SQD, XRC_SEND, 0, DRAINED | IBV_QP_PORT | REQUESTER),
    MAY(SQD, SQD, XRC_RECV, 0, DRAINED | IBV_QP_PORT | IBV_QP_TIMEOUT | RESPONDER),
    MAY(SQD, SQD, RAW_PACKET, 0, 0),

    /* An error of a reliable service ends in ERR, so only the others ever are in SQE (IBA 10.3.1.6). */
    MAY(SQE, RTS, UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS),
    MAY(SQE, RTS, UD, 0, RUNNING_DATAGRAM),
    MAY(SQE, RTS, RAW_PACKET, 0, 0),
};

static bool state_exists(enum ibv_qp_state state)
{
    return (unsigned)state < STATES;
}

static bool type_exists(enum ibv_qp_type type)
{
    return (unsigned)type < TYPES && table[IBV_QPS_RESET][IBV_QPS_INIT][type].allowed;
}

struct qp_transition qp_state_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (!type_exists(type) || !state_exists(from) || !state_exists(to))
        return (struct qp_transition){false, 0, 0};
    struct qp_transition transition = table[from][to][type];
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        transition.allowed = true;
    if (!transition.allowed)
        return transition;
    if (from == to)
        transition.optional |= IBV_QP_STATE;
    else
        transition.required |= IBV_QP_STATE;
    return transition;
}

enum reason qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int attr_mask)
{
    const struct qp_transition transition = qp_state_transition(type, from, to);
    if (!state_exists(from) || !state_exists(to))
        return REASON_STATE_UNKNOWN;
    if (!transition.allowed)
        return REASON_STATE_TRANSITION;
    if (transition.required & ~attr_mask)
        return REASON_ATTRIBUTE_MISSING;
    if (attr_mask & ~(transition.required | transition.optional))
        return REASON_ATTRIBUTE_NOT_ALLOWED;
    return REASON_NONE;
}

int qp_state_mask(enum ibv_qp_type type, int attr_mask)
{
    if (type == IBV_QPT_XRC_SEND)
        return attr_mask & ~RESPONDER;
    if (type == IBV_QPT_XRC_RECV)
        return attr_mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    return attr_mask;
}
