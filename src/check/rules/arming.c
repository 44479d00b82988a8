/* Completion queues are armed, and polled after that, before a program waits for their events. */
#include <pthread.h>

#include "check/hooks.h"

static void waiting(struct shadow *channel)
{
    const struct shadow *cq;
    TAILQ_FOREACH (cq, shadow_all(), siblings)
        if (cq->kind == SHADOW_CQ && cq->cq.channel == channel && cq->cq.armer == (uintptr_t)pthread_self())
            finding_add(
                &(struct finding_about){
                    .rule = RULE_EVENT_MISSED, .kind = "cq", .number = cq->number, .created = &cq->created},
                "A thread waits for an event of the %s that it armed while sends were under way, and has not polled "
                "since: those that had completed by then need raise no event",
                SHADOW_NAMED(cq));
}

static void stuck(struct shadow *channel)
{
    finding_add(
        &(struct finding_about){
            .rule = RULE_NEVER_ARMED, .kind = "channel", .number = channel->number, .created = &channel->created},
        "A thread waits for an event, and no completion queue of the channel was ever armed");
}

const struct hooks rules_arming = {.waits = {.waiting = waiting, .stuck = stuck}};
