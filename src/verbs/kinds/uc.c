/* Unreliable connections. */
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/transitions.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/send/operations.h"
#include "verbs/send/transmit.h"
#include "wire/op.h"

/* An error of a reliable service ends in ERR, so only unreliable services have SQE (IBA 10.3.1.6). */
static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, CONNECTED, 0),
    MAY(INIT, INIT, 0, CONNECTED),
    MAY(INIT, RTR, PATH, STARTING),
    MAY(RTR, RTS, IBV_QP_SQ_PSN, RUNNING),
    MAY(RTS, RTS, 0, RUNNING),
    MAY(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(SQD, RTS, 0, RUNNING),
    MAY(SQD, SQD, 0, DRAINED),
    MAY(SQE, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS),
};

const struct qp_kind uc_kind = {
    .type = IBV_QPT_UC,
    .name = "UC",
    .service = SERVICE_UC,
    .traits = QP_TRAITS_UC,
    .opcodes = OPCODES_UC,
    .send_flags = SEND_FLAGS,
    .builders = BUILDERS_UC,
    .transitions = transitions,
    .owner = &qp_owner_operations,
    .endpoint = &qp_endpoint_operations,
    .transmit = qp_transmit_connected,
};
