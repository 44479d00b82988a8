#include "verbs/qp/qp_error.h"

#include "verbs/object/async.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"

void qp_raise(struct qp *qp, enum ibv_event_type type)
{
    struct disturbance *disturbance = qp_datapath(qp)->disturbance;
    if (!disturbance || !disturbance->raises(qp, type))
        qp_raise_now(qp, type);
}

void qp_raise_now(struct qp *qp, enum ibv_event_type type)
{
    struct qp *handle;
    LIST_FOREACH (handle, &qp->xrc.handles, xrc.handle)
        async_raise(handle->object.context, (struct ibv_async_event){.element.qp = &handle->ibv, .event_type = type});
    if (!(qp->traits & QP_SHARED))
        async_raise(qp->object.context, (struct ibv_async_event){.element.qp = &qp->ibv, .event_type = type});
}

void qp_withdraw_references(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp_is_reliable(qp) && qp->path.peer && engine_has_shipped(qp_engine(qp)) && !qp->process->forked)
        qp->path.peer->link->operations->revoke(qp->path.peer->link);
}

void qp_flush_receives(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp->kind->flush_receives)
        return qp->kind->flush_receives(qp);
    if (qp->uses.srq) {
        if (qp->uses.srq->kind->flush)
            qp->uses.srq->kind->flush(qp);
        if (!qp->progress.last_wqe_raised)
            qp_raise(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
        qp->progress.last_wqe_raised = true;
        return;
    }
    bool ignored;
    const struct recv_wqe *receive;
    while ((receive = receive_queue_take(&qp->receives.own, 0, &ignored))) {
        struct recv_cqe flushed = {.status = IBV_WC_WR_FLUSH_ERR, .reason = REASON_FLUSHED, .opcode = IBV_WC_RECV};
        qp_owner(qp)->operations->received(qp_owner(qp), receive, &flushed);
    }
}

/* Peers stop reading our memory before the first completion, after which it is the program's again. */
void qp_flush(struct qp *qp)
{
    qp_withdraw_references(qp);
    qp_unpublish_failed(qp);
    qp_enter(qp, IBV_QPS_ERR);
    qp_door_flush(qp);
    qp_flush_receives(qp);
}

void qp_fail(struct qp *qp, enum ibv_event_type event)
{
    lock_assert_held(&qp->lock);
    if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
        return;
    if (qp->traits & QP_INSIDE_WQ)
        return qp_owner(qp)->operations->failed(qp_owner(qp), false);
    qp_flush(qp);
    if (event != IBV_EVENT_DEVICE_FATAL) /* the contexts report that event themselves */
        qp_raise(qp, event);
}
