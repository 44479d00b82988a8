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

/* Reports an element whose length the field of EFA's work requests does not hold. */
static void judge_length(struct shadow *owner, struct wqe *wqe)
{
    enum { MOST = UINT16_MAX };
    unsigned at = 0;
    if (!(wqe->flags & WQE_RECEIVE) || !hooks_is_vendors(owner->context))
        return;
    while (at < wqe->count && wqe->sges[at].length <= MOST)
        at++;
    if (at == wqe->count)
        return;
    finding_add(HOOKS_ABOUT(RULE_RECEIVE_WRAPPED, owner, .posted = wqe->posted),
                "Element %u of a receive of %s has %u bytes, of at most 65535 (wr_id %llu)", at, SHADOW_NAMED(owner),
                wqe->sges[at].length, (unsigned long long)wqe->wr_id);
}

/* The sender of a message of SRD learns of it; a datagram of UD is lost. On other services the receive ends. */
static void refused_peers(struct shadow *qp, const struct calls_refused *refused)
{
    if (!qp->qp.datagrams || !refused->too_long)
        return;
    finding_add(HOOKS_ABOUT(RULE_RECEIVE_SHORT, qp, .posted = shadow_receiver(qp)->last_receive.posted),
                "Queue pair 0x%x has refused %llu message%s that %s longer than the receive posted for %s", qp->number,
                (unsigned long long)refused->too_long, plural(refused->too_long),
                refused->too_long == 1 ? "was" : "were", refused->too_long == 1 ? "it" : "them");
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
    .posted = judge_length,
    .waits = {.ran_out = ran_out, .missing = missing},
    .refused_peers = refused_peers,
    .completed = watch_limit,
    .taken = taken,
};
