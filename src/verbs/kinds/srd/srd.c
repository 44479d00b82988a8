#include "verbs/kinds/srd/srd.h"

#include "transport/engine/engine.h"
#include "verbs/kinds/srd/srd_ways.h"
#include "verbs/kinds/transitions.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/send/operations.h"
#include "wire/op.h"

/* EFA's kernel driver has this table (amzn-drivers). */
static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, DATAGRAM, 0),
    MAY(INIT, INIT, 0, DATAGRAM),
    MAY(INIT, RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
    MAY(RTR, RTS, IBV_QP_SQ_PSN, RUNNING_DATAGRAM | IBV_QP_RNR_RETRY),
    MAY(RTS, RTS, 0, RUNNING_DATAGRAM),
    MAY(RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
    MAY(SQD, RTS, 0, RUNNING_DATAGRAM),
    MAY(SQD, SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
    MAY(SQE, RTS, 0, RUNNING_DATAGRAM),
};

void srd_set_options(struct ibv_qp *ibv, bool unsolicited, bool inline_writes)
{
    qp_of(ibv)->sends.options = (unsolicited ? SRD_UNSOLICITED : 0) | (inline_writes ? SRD_INLINE_WRITE : 0);
}

/* The recorder has no line for the doors of this service. */
static void initialize_engine(struct qp *qp, const struct send_queue *queue)
{
    engine_initialize(qp_engine(qp), SERVICE_SRD, qp_owner(qp), queue, NULL);
}

static int srd_fill(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    int error = srd_make_first_room(qp);
    return error ? error : srd_ways_make(qp);
}

/* The engine keeps no memory that is freed. */
static void clear(struct qp *qp)
{
    srd_free_rooms(qp, false);
    engine_reset(qp_engine(qp));
    srd_ways_close(qp);
}

static void forget_address(struct qp *qp, const void *address)
{
    engine_forget_address(qp_engine(qp), address);
}

static void srd_release(struct qp *qp)
{
    srd_free_rooms(qp, true);
    srd_ways_free(qp);
}

const struct qp_kind srd_kind = {
    .type = IBV_QPT_DRIVER,
    .name = "SRD",
    .service = SERVICE_SRD,
    .traits = QP_DATAGRAM | QP_SENDS | QP_RECEIVES | QP_RESPONDS | QP_UNORDERED,
    .opcodes = OPCODES_SRD,
    .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
    .builders = BUILDERS_SRD,
    .transitions = transitions,
    .owner = &srd_owner_operations,
    .endpoint = &srd_endpoint_operations,
    .fill = srd_fill,
    .initialize_engine = initialize_engine,
    .release = srd_release,
    .transmit = srd_transmit,
    .forget_address = forget_address,
    .clear = clear,
};
