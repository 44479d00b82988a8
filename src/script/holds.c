#include "script/holds.h"

#include <infiniband/verbs.h>

#include "base/text/text.h"

enum server { LIBRARY, KERNEL, VENDOR_LIBRARY };

/* Who serves the call. */
static enum server server_of(enum script_call call)
{
    static const enum server servers[SCRIPT_CALLS] = {
#define CALL_VERB(...)
#define CALL_OBJECT(...)
#define CALL_VENDOR(answer, type, name, ...) [SCRIPT_##name] = VENDOR_LIBRARY,
#define CALL_COMMAND(answer, type, name, title, parameters, arguments) [SCRIPT_##name] = KERNEL,
#include "calls/each.def"
    };
    return servers[call];
}

static bool holds_at(enum script_call event)
{
    if (event < SCRIPT_CALLS)
        return server_of(event) == LIBRARY;
    return event == SCRIPT_work || event == SCRIPT_receive || event == SCRIPT_open || event == SCRIPT_completion ||
           event == SCRIPT_event;
}

/* The event of the rule that no layer in front sees; NULL: it sees all, or those of calls that a pattern names. */
static const struct script_name *unseen_event(const struct script_rule *rule)
{
    bool any = false;
    const struct script_name *unseen = NULL;
    for (enum script_call event = 0; event < SCRIPT_EVENTS; event++) {
        any |= rule->calls[event] && event < SCRIPT_CALLS && holds_at(event);
        if (rule->calls[event] && !holds_at(event) && !(unseen && event < SCRIPT_CALLS))
            unseen = &script_names[event];
    }
    return any ? NULL : unseen;
}

static bool is_of_vendor(const struct script_name *event)
{
    enum script_call call = (enum script_call)(event - script_names);
    return call < SCRIPT_CALLS && server_of(call) == VENDOR_LIBRARY;
}

/* The word of an action that only softverbs' own devices do; NULL: the rule has none. Work whose completion is turned
 * is done, so none is lost without an error. */
static const char *other_action(const struct script_rule *rule)
{
    if (rule->end.wanted && rule->end.status == IBV_WC_SUCCESS)
        return "complete SUCCESS";
    if (rule->process.freeze)
        return "freeze";
    if (rule->fates & SCRIPT_OVERRUN)
        return "overrun";
    return rule->fates & SCRIPT_RELEASE ? "release" : NULL;
}

bool script_holds_around(const struct script *script, char *why, size_t size)
{
    for (unsigned i = 0; i < script->count; i++) {
        const struct script_rule *rule = &script->rules[i];
        const struct script_name *event = unseen_event(rule);
        const char *action = other_action(rule);
        if (event && is_of_vendor(event))
            return SAY_AND(
                false, why, size,
                "The rule in line %u is for softverbs' own devices (\"softverbs run\"): \"%s\" is a call of a "
                "vendor's library, which rules around another libibverbs do not meet.",
                rule->line, event->title);
        if (event || action)
            return SAY_AND(false, why, size,
                           "The rule in line %u is for softverbs' own devices (\"softverbs run\"): %s \"%s\" is inside "
                           "the device or the kernel, and can't be disturbed around another libibverbs.",
                           rule->line, event ? "what it is about," : "its action", event ? event->title : action);
    }
    return true;
}
