/* The target: mlx5dv_create_qp(3) with MLX5DV_DCTYPE_DCT. */
#include <errno.h>

#include "events/refusal.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/kinds/dc/dc_responder.h"
#include "verbs/kinds/transitions.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_path.h"
#include "wire/op.h"

void dct_set_key(struct ibv_qp *ibv, uint64_t key)
{
    qp_of(ibv)->dc.key = key;
}

static bool is_hello(const struct packet *packet)
{
    return op_service(packet->opcode) == SERVICE_DC && op_operation(packet->opcode) == OPERATION_HELLO;
}

/* Checks a packet as a queue pair does, and counts it. REASON_NONE: it is for this target. Under qp->lock. */
static enum reason check(struct qp *qp, const struct endpoint_arrival *arrival)
{
    const struct packet *packet = arrival->from.packet;
    unsigned service = op_service(packet->opcode);
    qp_flow(qp)->now = arrival->now;
    if (qp_port_is_down(qp))
        return REASON_PACKET_PORT_DOWN;
    enum reason reason = qp_path_refusal(qp, packet, arrival->from.interface);
    if (!reason && service != SERVICE_XRC && !is_hello(packet))
        reason = REASON_PACKET_SERVICE;
    if (!reason && is_hello(packet) && !dc_segment_may_be(packet->dc.segment, arrival->from.interface))
        reason = REASON_PACKET_SEGMENT;
    return !reason && qp->state != IBV_QPS_RTR ? REASON_PACKET_QP_STATE : reason;
}

static void drop_packet(struct qp *qp, const struct packet *packet, enum reason reason)
{
    lock_take(&qp->lock);
    qp_owner(qp)->operations->dropped(qp_owner(qp), packet, reason);
    lock_release(&qp->lock);
}

static void welcome(struct qp *qp, const struct endpoint_arrival *arrival)
{
    bool wrong_key = arrival->from.packet->dc.key != qp->dc.key;
    if (wrong_key)
        drop_packet(qp, arrival->from.packet, REASON_PACKET_ACCESS_KEY);
    dc_target_welcome(qp->dc.target, arrival, wrong_key);
}

static enum endpoint_output receive(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    const struct packet *packet = arrival->from.packet;
    lock_take(&qp->lock);
    enum reason reason = check(qp, arrival);
    bool asks = !reason && is_hello(packet);
    if (asks)
        traffic_received(qp_flow(qp), packet, arrival->from.route);
    lock_release(&qp->lock);
    if (reason)
        drop_packet(qp, packet, reason);
    else if (asks)
        welcome(qp, arrival);
    else if (!dc_target_deliver(qp->dc.target, arrival))
        drop_packet(qp, packet, REASON_PACKET_RESPONDER);
    return ENDPOINT_NOTHING;
}

/* Only its responders transmit. */
static bool flush_nothing(struct endpoint *endpoint, nanos now, bool ack_later)
{
    return true;
}

static int check_attributes(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
    return attr->srq ? 0 : refuse_in("mlx5dv_create_qp", EINVAL, REASON_DCT_NO_SRQ, "srq is NULL");
}

static int make_target(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    qp->dc.target = dc_target_make(qp);
    return qp->dc.target ? 0 : ENOMEM;
}

/* The recorder has no line for the doors of this kind. */
static void initialize_idle(struct qp *qp, const struct send_queue *queue)
{
    engine_initialize(qp_engine(qp), SERVICE_XRC, qp_owner(qp), queue, NULL);
}

static void retire(struct qp *qp)
{
    dc_target_end(qp->dc.target);
}

static void renew(struct qp *qp)
{
    if (qp->dc.target)
        dc_target_renew(qp->dc.target);
}

static void free_target(struct qp *qp)
{
    dc_target_free(qp->dc.target);
}

static const struct endpoint_operations endpoint_operations = {
    .receive = receive, .flush = flush_nothing, .fail_overrun = qp_endpoint_fail_overrun};

/* The kernel's driver of mlx5 has this table; there is no RTS. */
static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, CONNECTED, 0),
    MAY(INIT, RTR, IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU, 0),
};

const struct qp_kind dct_kind = {
    .type = IBV_QPT_DRIVER,
    .name = "DCT",
    .service = SERVICE_XRC,
    .traits = QP_RELIABLE | QP_RECEIVES | QP_RESPONDS | QP_WELCOMES,
    .transitions = transitions,
    .owner = &qp_owner_operations,
    .endpoint = &endpoint_operations,
    .refuse = check_attributes,
    .fill = make_target,
    .initialize_engine = initialize_idle,
    .retire = retire,
    .clear = renew,
    .release = free_target,
};
