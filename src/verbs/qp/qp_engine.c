#include "verbs/qp/qp_engine.h"

#include "verbs/qp/qp_doors.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"

static bool fits_service(const struct qp *qp, uint8_t opcode)
{
    if (!(qp->traits & QP_RESPONDS) && !(op_find(opcode)->flags & OP_RESPONSE))
        return false; /* no request may be sent to it */
    return op_service(opcode) == qp_flow(qp)->service;
}

void qp_receive(struct qp *qp, const struct packet *packet, nanos now)
{
    lock_assert_held(&qp->lock);
    bool notifies = op_service(packet->opcode) == SERVICE_CNP && qp_is_reliable(qp);
    if (!notifies && !fits_service(qp, packet->opcode))
        return qp_owner(qp)->operations->dropped(qp_owner(qp), packet, REASON_PACKET_SERVICE);
    qp_door_receive(qp, packet, now);
}

bool qp_has_output(const struct qp *qp)
{
    return engine_has_output(qp_engine(qp)) || tags_have_work(&qp_tags(qp)->port);
}

nanos qp_deadline(const struct qp *qp)
{
    nanos deadline = engine_deadline(qp_engine(qp));
    const struct disturbance *disturbance = qp_datapath(qp)->disturbance;
    if (qp_is_watched(qp) && qp->rate_limit.wake < deadline)
        deadline = qp->rate_limit.wake;
    if (disturbance && disturbance->due < deadline)
        deadline = disturbance->due;
    if (qp->traits & QP_ADDRESSED && qp->dc.wake < deadline)
        deadline = qp->dc.wake;
    return qp->groups.since && qp->groups.wake < deadline ? qp->groups.wake : deadline;
}

nanos qp_watch(struct qp *qp)
{
    qp_door_watch(qp);
    return qp_deadline(qp);
}

void qp_give_back_receive(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    const struct recv_wqe *receive = engine_open_receive(qp_engine(qp));
    struct receive_queue *queue = qp->xrc.serving ? &qp->xrc.serving->queue : qp->receives.queue;
    if (receive && queue)
        receive_queue_drop(queue, receive);
    qp->xrc.serving = NULL;
    if (qp->kind->clear)
        qp->kind->clear(qp);
}
