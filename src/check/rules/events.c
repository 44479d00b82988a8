/* Events are acknowledged before their object is destroyed. */
#include <pthread.h>

#include "check/hooks.h"

static void destroying(struct shadow *shadow)
{
    /* another thread may be about to acknowledge what it has fetched, for which the call waits */
    if (shadow->kind == SHADOW_CM_ID || shadow->events == shadow->acknowledged ||
        shadow->fetcher != (uintptr_t)pthread_self())
        return;
    finding_add(&(struct finding_about){.rule = RULE_EVENT_UNACKNOWLEDGED,
                                        .kind = shadow_kind_name(shadow->kind),
                                        .number = shadow->number,
                                        .created = &shadow->created},
                "The %s is destroyed while %u of its events are not acknowledged: the call waits for them",
                SHADOW_NAMED(shadow), shadow->events - shadow->acknowledged);
}

const struct hooks rules_events = {.destroying = destroying};
