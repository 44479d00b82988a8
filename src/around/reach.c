#include "around/reach.h"

#include <stddef.h>

#include "around/asynchronous.h"
#include "around/channels.h"
#include "around/late.h"
#include "around/turned.h"
#include "base/text/text.h"
#include "script/rules.h"

static const char *device_of(const struct calls_subject *subject)
{
    const struct ibv_context *context = script_reach_context(subject);
    if (script_reach_is(subject, "device"))
        return subject->object ? ((const struct ibv_device *)subject->object)->name : NULL;
    return context ? context->device->name : NULL;
}

struct wanted {
    bool ends, raises, completions, events;
};

static struct wanted wanted_by(const struct script *script)
{
    struct wanted wanted = {0};
    for (unsigned i = 0; script && i < script->count; i++) {
        const struct script_rule *rule = &script->rules[i];
        wanted.ends |= rule->end.wanted;
        wanted.raises |= rule->raised != NULL;
        wanted.completions |= rule->calls[SCRIPT_completion];
        wanted.events |= rule->calls[SCRIPT_event];
    }
    return wanted;
}

static void prepare(void)
{
    struct wanted wanted = wanted_by(rules_all());
    if (wanted.ends)
        turned_prepare();
    if (wanted.events || wanted.completions) { /* later rules may want the other, while queues are iterated */
        late_prepare();
        channels_prepare();
    }
    if (wanted.raises)
        asynchronous_prepare();
}

bool around_may_begin(const struct script *script, char *why, size_t size)
{
    struct wanted wanted = wanted_by(script);
    bool lacks_channels = (wanted.events || wanted.completions) && !channels_are_prepared();
    if (lacks_channels || (wanted.raises && !asynchronous_is_prepared()))
        return SAY_AND(false, why, size,
                       "Around another libibverbs a process has rules of %s only if it began with one: "
                       "softverbs around --inject '%s' -- PROGRAM.",
                       lacks_channels ? "completions and events" : "asynchronous events",
                       lacks_channels ? "when event: note" : "when open, nth 1000: raise port-up");
    return true;
}

const struct script_reach around_reach = {.device = device_of,
                                          .event = asynchronous_raise,
                                          .post_send = turned_post_send,
                                          .post_recv = turned_post_recv,
                                          .post_srq_recv = turned_post_srq_recv,
                                          .build_begin = turned_build_begin,
                                          .build_end = turned_build_end,
                                          .prepare = prepare};
