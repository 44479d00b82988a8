#include "verbs/send/post_receive.h"

#include <errno.h>
#include <stdio.h>

#include "base/likely.h"
#include "base/result.h"
#include "diag/sentence.h"
#include "events/refusal.h"
#include "verbs/qp/qp_error.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"

cold static int refuse_receive(struct qp *qp, const struct ibv_recv_wr *wr)
{
    const struct receive_queue_owner *owner = &qp->receives.own.owner;
    char call[96];
    snprintf(call, sizeof call, "%s 0x%x: %s of wr_id %llu", owner->kind, owner->number, owner->call,
             (unsigned long long)(wr ? wr->wr_id : 0));
    if (qp->ethernet.spread)
        return refuse_in(call, EINVAL, REASON_RSS_NO_QUEUE, "it has an indirection table");
    if (qp->uses.srq)
        return refuse_in(call, EINVAL, REASON_RECEIVE_SRQ, "it has the " OBJECT_NAMED, qp->uses.srq->object.class->name,
                         qp->uses.srq->object.handle);
    if (!(qp->traits & QP_RECEIVES))
        return refuse_in(call, EINVAL, REASON_RECEIVE_NONE, "qp_type is %u", qp->ibv.qp_type);
    receive_queue_note_refused(&qp->receives.own, REASON_RECEIVE_STATE);
    return refuse_in(call, EINVAL, REASON_RECEIVE_STATE, "the queue pair is in RESET");
}

/* Looks at the state once more after posting: the thread that moved the queue pair to error flushes a receive that was
 * posted just before, and this thread a receive that was posted just after; the queue's lock orders the two. */
int qp_post_receive(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct qp *qp = qp_of(ibv);
    if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET || qp->uses.srq ||
        !qp->receives.queue) {
        *bad = wr;
        return result_failure(refuse_receive(qp, wr));
    }
    int error = receive_queue_post(qp->receives.queue, wr, bad);
    if (atomic_load(&qp->state) == IBV_QPS_ERR) {
        lock_take(&qp->lock);
        if (atomic_load(&qp->state) == IBV_QPS_ERR)
            qp_flush_receives(qp);
        lock_release(&qp->lock);
    }
    return error;
}
