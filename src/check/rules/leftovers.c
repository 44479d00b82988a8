/* Objects that are left when a context is closed or the process ends. */
#include <unistd.h>

#include "calls/questions.h"
#include "check/hooks.h"
#include "diag/sentence.h"

/* Returns true if this process has left the object (with a context: the object in that context). A context that is
 * being closed is not left, and neither is one that librdmacm has opened and keeps. */
static bool is_left(const struct shadow *shadow, const struct ibv_context *context)
{
    bool is_context = shadow->kind == SHADOW_CONTEXT, kept = is_context && (context || shadow->created.left_out);
    return shadow->process == getpid() && !kept && (!context || shadow->context == context);
}

static const struct wqe *find_signalled(const struct wqe_queue *sends)
{
    uint32_t at = 0;
    while (at < sends->count && !(wqe_at(sends, at)->flags & WQE_SIGNALED))
        at++;
    return at < sends->count ? wqe_at(sends, at) : NULL;
}

/* Asks the library, as a completion may be polled before its post is noted here, where several threads post. */
static bool was_polled(const struct shadow *qp)
{
    return calls_questions->qp_is_polled(qp->handle);
}

static void report_sends(const struct shadow *qp)
{
    const struct wqe *first = find_signalled(&qp->qp.sends);
    if (!first || qp->process != getpid() || was_polled(qp))
        return;
    finding_add(HOOKS_ABOUT(RULE_NEVER_POLLED, qp, .posted = first->posted),
                "Queue pair 0x%x ends with %u signalled send%s whose completion%s never polled (the first: a %s, "
                "wr_id %llu)",
                qp->number, qp->qp.signaled, plural(qp->qp.signaled), qp->qp.signaled == 1 ? " was" : "s were",
                wqe_name(first), (unsigned long long)first->wr_id);
}

/* Reports completions of receives. Completions of sends are reported with their queue pair. */
static void report_entries(const struct shadow *cq)
{
    struct calls_cq_entries entries;
    if (!calls_questions->cq_entries(cq->handle, &entries) || !entries.waiting || cq->cq.sends_due ||
        cq->process != getpid())
        return;
    finding_add(HOOKS_ABOUT(RULE_NEVER_POLLED, cq), "The %s ends with %u completion%s never polled", SHADOW_NAMED(cq),
                entries.waiting, entries.waiting == 1 ? " that was" : "s that were");
}

/* Notes that completions of this queue pair, which is being destroyed, never come. */
static void note_lost(const struct shadow *qp)
{
    const struct wqe *first = find_signalled(&qp->qp.sends);
    struct shadow *cq = qp->qp.send_cq;
    if (!first || !cq || was_polled(qp))
        return;
    cq->cq.lost.sends = qp->qp.signaled;
    cq->cq.lost.number = qp->number;
    cq->cq.lost.posted = first->posted;
}

static void gone(struct shadow *cq)
{
    uint32_t lost = cq->cq.lost.sends;
    finding_add(HOOKS_ABOUT(RULE_AWAITS_GONE, cq, .posted = cq->cq.lost.posted),
                "A thread waits for completions of the %s, which no queue pair uses any more: queue pair 0x%x was "
                "destroyed with %u signalled send%s whose completion%s never polled",
                SHADOW_NAMED(cq), cq->cq.lost.number, lost, plural(lost), lost == 1 ? " was" : "s were");
    cq->cq.lost.sends = 0;
}

static void tell_unpolled(struct shadow *shadow)
{
    if (shadow->kind == SHADOW_QP)
        report_sends(shadow);
    if (shadow->kind == SHADOW_CQ)
        report_entries(shadow);
}

static void destroying(struct shadow *shadow)
{
    tell_unpolled(shadow);
    if (shadow->kind == SHADOW_QP)
        note_lost(shadow);
}

/* The objects of a closed context are destroyed by now, so its CQs can't be asked for entries. */
static void report_unpolled(const struct ibv_context *context)
{
    struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (!context)
            tell_unpolled(shadow);
        else if (shadow->context == context && shadow->kind == SHADOW_QP)
            report_sends(shadow);
}

static void ended(const struct ibv_context *context)
{
    const struct shadow *shadow;
    report_unpolled(context);
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (is_left(shadow, context))
            finding_add(HOOKS_ABOUT(RULE_NEVER_DESTROYED, shadow), "The %s was never destroyed", SHADOW_NAMED(shadow));
}

const struct hooks rules_leftovers = {.destroying = destroying, .ended = ended, .waits.gone = gone};
