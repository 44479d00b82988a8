/* Reliable connections. */
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/transitions.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/send/operations.h"
#include "wire/op.h"

static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, CONNECTED, 0),
    MAY(INIT, INIT, 0, CONNECTED),
    MAY(INIT, RTR, PATH | RESPONDER, STARTING),
    MAY(RTR, RTS, REQUESTER | IBV_QP_SQ_PSN, RUNNING_RESPONDER),
    MAY(RTS, RTS, 0, RUNNING_RESPONDER),
    MAY(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(SQD, RTS, 0, RUNNING_RESPONDER),
    MAY(SQD, SQD, 0, DRAINED | IBV_QP_PORT | REQUESTER | RESPONDER),
};

const struct qp_kind rc_kind = {
    .type = IBV_QPT_RC,
    .name = "RC",
    .service = SERVICE_RC,
    .traits = QP_TRAITS_RC,
    .opcodes = OPCODES_RC,
    .send_flags = SEND_FLAGS,
    .builders = BUILDERS_RC,
    .transitions = transitions,
    .owner = &qp_owner_operations,
    .endpoint = &qp_endpoint_operations,
};
