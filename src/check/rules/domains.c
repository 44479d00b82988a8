/* One thread at a time uses the objects of a thread domain. */
#include "check/hooks.h"

static void shared(struct shadow *td, const char *call)
{
    finding_add(HOOKS_ABOUT(RULE_THREAD_DOMAIN, td),
                "%s is called on an object of a thread domain while another thread is in a call on an object of it",
                call);
}

const struct hooks rules_domains = {.shared = shared};
