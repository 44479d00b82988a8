/* A destroyed object is not used, and one thread at a time polls a SINGLE_THREADED CQ. Refused calls are reported, too.
 */
#include <string.h>

#include "check/hooks.h"

static void used_gone(const struct shadow *gone, const char *call)
{
    finding_add(HOOKS_ABOUT(RULE_USE_AFTER_DESTROY, gone, .destroyed = &gone->destroyed),
                "%s names the %s that was destroyed; the checker refuses it with EINVAL", call, SHADOW_NAMED(gone));
}

static void destroyed_inside(struct shadow *shadow, const char *call)
{
    finding_add(HOOKS_ABOUT(RULE_DESTROYED_INSIDE, shadow), "The %s is destroyed while another thread is in %s on it",
                SHADOW_NAMED(shadow), call);
}

static void polled_twice(struct shadow *cq)
{
    finding_add(HOOKS_ABOUT(RULE_SINGLE_THREADED, cq),
                "The %s that was created as SINGLE_THREADED is polled by two threads at the same time",
                SHADOW_NAMED(cq));
}

static void refused_call(const char *call, int error, enum reason reason)
{
    const struct finding_about about = {.rule = RULE_REFUSED_CALL, .kind = "process"};
    char room[80];
    const char *text = strerror_r(error, room, sizeof room);
    if (reason)
        finding_add(&about, "%s was refused: %s (reason %u): %s", call, text, reason, reason_sentence(reason));
    else
        finding_add(&about, "%s was refused: %s", call, text);
}

const struct hooks rules_lifetime = {.used_gone = used_gone,
                                     .destroyed_inside = destroyed_inside,
                                     .polled_twice = polled_twice,
                                     .refused_call = refused_call};
