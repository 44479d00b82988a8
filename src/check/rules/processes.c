/* Verbs are called neither in a child on its parent's objects, nor in a signal handler. */
#include "check/hooks.h"

static void used_by_child(const struct shadow *shadow, const char *call)
{
    finding_add(HOOKS_ABOUT(RULE_USED_IN_CHILD, shadow), "%s in the child of a fork names the %s of its parent", call,
                SHADOW_NAMED(shadow));
}

static void in_signal(const char *call)
{
    finding_add(&(struct finding_about){.rule = RULE_SIGNAL_HANDLER, .kind = "process"}, "%s runs in a signal handler",
                call);
}

const struct hooks rules_processes = {.used_by_child = used_by_child, .in_signal = in_signal};
