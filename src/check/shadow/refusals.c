#include "check/shadow/refusals.h"

#include <unistd.h>

_Atomic bool refusals_kept;

void refusals_keep(struct shadow *owner, const struct shadow_refused *post)
{
    shadow_assert_locked();
    struct shadow_refused *kept = refusals_of(owner, post->receive);
    bool in_row = kept->call && (kept->in_row || kept->wr_id != post->wr_id);
    *kept = *post;
    kept->in_row = in_row;
    atomic_store_explicit(&refusals_kept, true, memory_order_relaxed);
}

/* A thread waits for receives at the receive CQ, and for sends at either CQ, since the peer may answer them. */
void refusals_each(const struct shadow *cq_or_channel, void (*visit)(struct shadow *, struct shadow_refused *))
{
    shadow_assert_locked();
    bool any = false;
    struct shadow *qp;
    TAILQ_FOREACH (qp, shadow_all(), siblings) {
        if (qp->kind != SHADOW_QP || qp->process != getpid())
            continue;
        struct shadow *owner = shadow_receiver(qp);
        struct shadow_refused *send = refusals_of(qp, false), *receive = refusals_of(owner, true);
        bool receives = shadow_is_of(qp->qp.recv_cq, cq_or_channel);
        any |= send->call || receive->call;
        if (send->call && (receives || shadow_is_of(qp->qp.send_cq, cq_or_channel)))
            visit(qp, send);
        if (receive->call && receives)
            visit(owner, receive);
    }
    atomic_store_explicit(&refusals_kept, any, memory_order_relaxed);
}
