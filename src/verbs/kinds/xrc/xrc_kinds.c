/* The two ends of an XRC connection (IBA annex A14): one only sends, the other only receives. */
#include <stdlib.h>

#include "verbs/kinds/kinds.h"
#include "verbs/kinds/transitions.h"
#include "verbs/kinds/xrc/xrc.h"
#include "verbs/kinds/xrc/xrc_endpoint.h"
#include "verbs/kinds/xrc/xrc_front_state.h"
#include "verbs/kinds/xrc/xrc_recv.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp.h"
#include "verbs/send/operations.h"
#include "wire/op.h"

static const struct qp_transition sender_transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, CONNECTED, 0), MAY(INIT, INIT, 0, CONNECTED),
    MAY(INIT, RTR, PATH, STARTING), MAY(RTR, RTS, REQUESTER | IBV_QP_SQ_PSN, RUNNING),
    MAY(RTS, RTS, 0, RUNNING),      MAY(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(SQD, RTS, 0, RUNNING),      MAY(SQD, SQD, 0, DRAINED | IBV_QP_PORT | REQUESTER),
};

const struct qp_kind xrc_send_kind = {
    .type = IBV_QPT_XRC_SEND,
    .name = "XRC_SEND",
    .service = SERVICE_XRC,
    .traits = QP_TRAITS_XRC_SEND,
    .opcodes = OPCODES_RC,
    .send_flags = SEND_FLAGS,
    .builders = BUILDERS_RC,
    .ignored = RESPONDER,
    .transitions = sender_transitions,
    .owner = &qp_owner_operations,
    .endpoint = &qp_endpoint_operations,
};

static const struct qp_transition receiver_transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, CONNECTED, 0),
    MAY(INIT, INIT, 0, CONNECTED),
    MAY(INIT, RTR, PATH | RESPONDER, STARTING),
    MAY(RTR, RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, RUNNING_RESPONDER),
    MAY(RTS, RTS, 0, RUNNING_RESPONDER),
    MAY(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(SQD, RTS, 0, RUNNING_RESPONDER),
    MAY(SQD, SQD, 0, DRAINED | IBV_QP_PORT | IBV_QP_TIMEOUT | RESPONDER),
};

static void release(struct qp *qp)
{
    free(qp->xrc.front);
}

const struct qp_kind xrc_recv_kind = {
    .type = IBV_QPT_XRC_RECV,
    .name = "XRC_RECV",
    .service = SERVICE_XRC,
    .traits = QP_TRAITS_XRC_RECV,
    .ignored = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
    .transitions = receiver_transitions,
    .owner = &xrc_owner_operations,
    .endpoint = &xrc_endpoint_operations,
    .refuse = xrc_recv_refuse,
    .fill = xrc_recv_fill,
    .hand_out = xrc_recv_create,
    .close = xrc_recv_close,
    .release = release,
    .flush_receives = xrc_front_end,
    .clear = xrc_front_clear,
};
