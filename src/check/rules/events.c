/* As many events of an object are acknowledged as were fetched, before it is destroyed. */
#include <unistd.h>

#include "check/hooks.h"
#include "check/shadow/event_count.h"
#include "diag/sentence.h"

/* In the child of a fork the counts go on from the parent's, and the library does not wait. */
static bool is_of_parent(const struct shadow *shadow)
{
    return shadow_is_child && shadow->process != getpid();
}

/* Leaves out events that another thread has fetched: it may acknowledge them while the call waits. */
static void judge_missing(const struct shadow *shadow)
{
    if (!event_count_open(shadow) || event_count_is_others(shadow))
        return;
    finding_add(HOOKS_ABOUT(RULE_EVENT_UNACKNOWLEDGED, shadow),
                "The %s is destroyed while %u of its events are not acknowledged: the call waits for them",
                SHADOW_NAMED(shadow), event_count_open(shadow));
}

static void judge_excess(const struct shadow *shadow)
{
    unsigned excess = event_count_excess(shadow);
    if (!excess)
        return;
    finding_add(HOOKS_ABOUT(RULE_EVENT_OVERACKNOWLEDGED, shadow, .found = shadow->events.excess),
                "%u more event%s of the %s %s acknowledged than fetched: the call that destroys it waits until as many "
                "more are fetched",
                excess, plural(excess), SHADOW_NAMED(shadow), excess == 1 ? "was" : "were");
}

static bool is_judged(const struct shadow *shadow)
{
    return shadow->kind != SHADOW_CM_ID && !is_of_parent(shadow);
}

static void destroying(struct shadow *shadow)
{
    if (!is_judged(shadow))
        return;
    judge_missing(shadow);
    judge_excess(shadow);
}

static void ended(const struct ibv_context *context)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (is_judged(shadow) && (!context || shadow->context == context))
            judge_excess(shadow);
}

const struct hooks rules_events = {.destroying = destroying, .ended = ended};
