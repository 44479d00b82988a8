/* Queues have room for posted work and for completions. */
#include <errno.h>

#include "check/hooks.h"

static void taken(struct shadow *owner, const struct wqe *wqe)
{
    if (owner->kind != SHADOW_QP || !(wqe->flags & WQE_SIGNALED))
        return;
    const struct shadow *cq = wqe->flags & WQE_RECEIVE ? owner->qp.recv_cq : owner->qp.send_cq;
    if (!cq || cq->cq.due <= cq->cq.entries)
        return;
    finding_add(HOOKS_ABOUT(RULE_CQ_OVERRUN, cq, .posted = wqe->posted),
                "A completion queue of %u entries may have to take %u completions before the program polls: this %s "
                "of queue pair 0x%x is one more than it has room for",
                cq->cq.entries, cq->cq.due, wqe_name(wqe), owner->number);
}

/* Counts the sends again, as another thread may have polled since the refusal, and made room. */
static void refused(struct shadow *qp, const struct shadow_refused *post)
{
    const struct wqe_queue *sends = &qp->qp.sends;
    if (post->receive || post->error != ENOMEM || !sends->count || sends->count < qp->qp.cap.max_send_wr ||
        qp->qp.signaled)
        return;
    finding_add(HOOKS_ABOUT(RULE_SEND_QUEUE_STUCK, qp, .posted = wqe_at(sends, sends->count - 1)->posted),
                "The send queue of queue pair 0x%x is full of %u work requests, all unsignalled: it stays "
                "full",
                qp->number, sends->count);
}

const struct hooks rules_queues = {.taken = taken, .refused = refused};
