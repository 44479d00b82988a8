/* One place that knows which of the four engines a queue pair has. */
#include "verbs/qp/qp.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"

struct send_queue *qp_send_queue(struct qp *qp)
{
    switch (qp->flow.type) {
    case IBV_QPT_UC:
        return &qp->uc.queue;
    case IBV_QPT_UD:
        return &qp->ud.queue;
    case IBV_QPT_RAW_PACKET:
        return &qp->raw.queue;
    default:
        return &qp->rc.requester.queue;
    }
}

void qp_posted(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    switch (qp->flow.type) {
    case IBV_QPT_UC:
        return uc_posted(&qp->uc);
    case IBV_QPT_UD:
        return ud_posted(&qp->ud);
    case IBV_QPT_RAW_PACKET:
        return raw_posted(&qp->raw);
    default:
        return rc_posted(&qp->rc);
    }
}

static bool fits_service(const struct qp *qp, uint8_t opcode)
{
    static const uint8_t services[] = {[IBV_QPT_RC] = SERVICE_RC,
                                       [IBV_QPT_UC] = SERVICE_UC,
                                       [IBV_QPT_UD] = SERVICE_UD,
                                       [IBV_QPT_XRC_SEND] = SERVICE_XRC,
                                       [IBV_QPT_XRC_RECV] = SERVICE_XRC};
    if (qp->flow.type == IBV_QPT_RAW_PACKET)
        return false;
    if (qp->flow.type == IBV_QPT_XRC_SEND && !(op_find(opcode)->flags & OP_RESPONSE))
        return false; /* nothing may be asked of it */
    return op_service(opcode) == services[qp->flow.type];
}

void qp_receive(struct qp *qp, const struct packet *packet, nanos now)
{
    lock_assert_held(&qp->lock);
    if (op_service(packet->opcode) == SERVICE_CNP && qp_is_reliable(qp))
        return rc_notified(&qp->rc);
    if (!fits_service(qp, packet->opcode))
        return qp->owner.operations->dropped(&qp->owner, packet, REASON_PACKET_SERVICE);
    switch (qp->flow.type) {
    case IBV_QPT_UC:
        return uc_receive(&qp->uc, packet);
    case IBV_QPT_UD:
        return ud_receive(&qp->ud, packet);
    default:
        return rc_receive(&qp->rc, packet, now);
    }
}

bool qp_has_output(const struct qp *qp)
{
    switch (qp->flow.type) {
    case IBV_QPT_UC:
        return uc_has_output(&qp->uc);
    case IBV_QPT_UD:
        return ud_has_output(&qp->ud);
    case IBV_QPT_RAW_PACKET:
        return raw_has_output(&qp->raw);
    default:
        return rc_has_output(&qp->rc) || tags_have_work(&qp->tags.port);
    }
}

nanos qp_engine_deadline(const struct qp *qp)
{
    return qp_is_reliable(qp) ? rc_deadline(&qp->rc) : NANOS_NEVER;
}

nanos qp_deadline(const struct qp *qp)
{
    nanos deadline = qp_engine_deadline(qp);
    if (qp->rate_limit.rate && qp->rate_limit.wake < deadline)
        deadline = qp->rate_limit.wake;
    return qp->groups.since && qp->groups.wake < deadline ? qp->groups.wake : deadline;
}

nanos qp_watch(struct qp *qp)
{
    if (qp_is_reliable(qp))
        rc_watch(&qp->rc);
    return qp_deadline(qp);
}

static const struct recv_wqe *open_receive(const struct qp *qp)
{
    switch (qp->flow.type) {
    case IBV_QPT_UC:
        return qp->uc.receive;
    case IBV_QPT_UD: /* a message of one packet ends with it */
    case IBV_QPT_RAW_PACKET:
        return NULL;
    default:
        return qp->rc.responder.receive;
    }
}

void qp_give_back_receive(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    const struct recv_wqe *receive = open_receive(qp);
    struct receive_queue *queue = qp->xrc.serving ? &qp->xrc.serving->queue : qp->receives.queue;
    if (receive && queue)
        receive_queue_free(queue, receive);
    qp->xrc.serving = NULL;
}
