/* Unreliable datagrams. */
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/transitions.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/send/operations.h"
#include "verbs/send/transmit.h"
#include "wire/op.h"

static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, DATAGRAM, 0),
    MAY(INIT, INIT, 0, DATAGRAM),
    MAY(INIT, RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
    MAY(RTR, RTS, IBV_QP_SQ_PSN, RUNNING_DATAGRAM),
    MAY(RTS, RTS, 0, RUNNING_DATAGRAM),
    MAY(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(SQD, RTS, 0, RUNNING_DATAGRAM),
    MAY(SQD, SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
    MAY(SQE, RTS, 0, RUNNING_DATAGRAM),
};

const struct qp_kind ud_kind = {
    .type = IBV_QPT_UD,
    .name = "UD",
    .service = SERVICE_UD,
    .traits = QP_TRAITS_UD,
    .opcodes = OPCODES_UD,
    .send_flags = SEND_FLAGS,
    .builders = BUILDERS_UD,
    .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
    .transitions = transitions,
    .owner = &qp_owner_operations,
    .endpoint = &qp_endpoint_operations,
    .transmit = qp_transmit_datagrams,
};
