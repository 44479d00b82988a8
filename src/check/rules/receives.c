/* Receives that run out. */
#include "check/hooks.h"
#include "diag/sentence.h"

static void ran_out(struct shadow *qp, uint64_t naks)
{
    finding_add(
        HOOKS_ABOUT(RULE_RECEIVES_RAN_OUT, qp),
        "Queue pair 0x%x had no receive posted before this one for what its peer sent, and has refused that with "
        "%llu RNR NAK%s",
        qp->number, (unsigned long long)naks, plural(naks));
}

/* Reports an SRQ that is below its limit again, as the limit was not set again when its event was fetched. */
static void watch_limit(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    struct shadow *srq = wqe->flags & WQE_RECEIVE ? qp->qp.srq : NULL;
    if (!srq || !srq->srq.reached || !srq->srq.refilled || srq->srq.receives.count >= srq->srq.limit)
        return;
    srq->srq.refilled = false;
    finding_add(HOOKS_ABOUT(RULE_SRQ_LIMIT_PASSED, srq),
                "The %s has fewer receives than its limit %u again, without an event: the "
                "limit was not set again after IBV_EVENT_SRQ_LIMIT_REACHED",
                SHADOW_NAMED(srq), srq->srq.limit);
}

static void missing(struct shadow *qp, uint64_t naks)
{
    const struct shadow *owner = shadow_receiver(qp);
    finding_add(
        HOOKS_ABOUT(RULE_RECEIVE_MISSING, qp, .posted = owner->last_receive.posted),
        "A thread waits for completions, and queue pair 0x%x has no receive%s for what its peer sends, which it "
        "has refused with %llu RNR NAK%s",
        qp->number, owner->last_receive.posts ? " any more" : "", (unsigned long long)naks, plural(naks));
}

static void taken(struct shadow *owner, const struct wqe *wqe)
{
    if (wqe->flags & WQE_RECEIVE) {
        owner->last_receive.posted = wqe->posted;
        owner->last_receive.posts++;
    }
    if (owner->kind == SHADOW_SRQ && owner->srq.reached && owner->srq.receives.count >= owner->srq.limit)
        owner->srq.refilled = true;
}

const struct hooks rules_receives = {
    .waits = {.ran_out = ran_out, .missing = missing}, .completed = watch_limit, .taken = taken};
