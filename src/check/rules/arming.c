/* Completion queues are armed, and emptied after that, before a program waits for their events. */
#include <fcntl.h>
#include <pthread.h>

#include "calls/questions.h"
#include "check/hooks.h"

/* Returns true if an event of another CQ is there, so that the thread does not wait for this CQ. */
static bool has_other_event(const struct shadow *channel, const struct shadow *cq)
{
    const struct shadow *other;
    TAILQ_FOREACH (other, shadow_all(), siblings)
        if (other != cq && other->kind == SHADOW_CQ && other->cq.channel == channel &&
            calls_questions->channel_has(channel->handle, other->handle))
            return true;
    return false;
}

/* Returns how many entries this thread's last poll left; 0: none, or the CQ got others after it was armed. */
static uint32_t count_left(const struct shadow *channel, const struct shadow *cq)
{
    struct calls_cq_entries entries;
    bool left = cq->cq.leaver == (uintptr_t)pthread_self() && cq->cq.armed.now && !cq->cq.armed.raised &&
                calls_questions->cq_entries(cq->handle, &entries) && entries.added == cq->cq.armed.tail;
    return left && !(fcntl((int)channel->number, F_GETFL) & O_NONBLOCK) && !has_other_event(channel, cq)
               ? entries.waiting
               : 0;
}

static void judge(const struct shadow *channel, const struct shadow *cq)
{
    uint32_t left = rule_chosen.rules[RULE_NOT_DRAINED] ? count_left(channel, cq) : 0;
    if (left)
        finding_add(HOOKS_ABOUT(RULE_NOT_DRAINED, cq),
                    "A thread waits for an event of the %s, and its last poll left %u %s, which %s there before the "
                    "queue was armed and need raise no event",
                    SHADOW_NAMED(cq), left, left == 1 ? "entry" : "entries", left == 1 ? "was" : "were");
    else if (cq->cq.armer == (uintptr_t)pthread_self())
        finding_add(HOOKS_ABOUT(RULE_EVENT_MISSED, cq),
                    "A thread waits for an event of the %s that it armed while sends were under way, and has not "
                    "polled since: those that had completed by then need raise no event",
                    SHADOW_NAMED(cq));
}

static void waiting(struct shadow *channel)
{
    const struct shadow *cq;
    TAILQ_FOREACH (cq, shadow_all(), siblings)
        if (cq->kind == SHADOW_CQ && cq->cq.channel == channel)
            judge(channel, cq);
}

static void stuck(struct shadow *channel)
{
    finding_add(HOOKS_ABOUT(RULE_NEVER_ARMED, channel),
                "A thread waits for an event, and no completion queue of the channel was ever armed");
}

const struct hooks rules_arming = {.waits = {.waiting = waiting, .stuck = stuck}};
