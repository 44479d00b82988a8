#include "check/hooks_call.h"

#include <string.h>
#include <unistd.h>

#include "events/refusal.h"

/* Those of rules, and a place for the user's. */
static const struct hooks *files[HOOKS_FILES + 1] = {
#define RULES_OF(file) &rules_##file,
#include "check/rules.def"
};

hooks_function *hooks_lists[sizeof(struct hooks) / sizeof(hooks_function *)][HOOKS_FILES + 2];

void hooks_follow(const struct hooks *hooks)
{
    files[HOOKS_FILES] = hooks;
}

bool hooks_are_followed(void)
{
    return files[HOOKS_FILES];
}

void hooks_begin(void)
{
    enum { PLACES = sizeof(struct hooks) / sizeof(hooks_function *) };
    for (unsigned place = 0; place < PLACES; place++) {
        hooks_function **next = hooks_lists[place];
        for (unsigned file = 0; file < HOOKS_FILES + (files[HOOKS_FILES] != NULL); file++) {
            hooks_function *function;
            memcpy(&function, (const char *)files[file] + place * sizeof function, sizeof function);
            if (function)
                *next++ = function;
        }
    }
}

void hooks_refused(const char *call, int error)
{
    shadow_lock();
    HOOKS_CALL(refused_call, call, error, refusal_reason());
    shadow_unlock();
}

void hooks_see_event(const struct ibv_async_event *event)
{
    shadow_lock();
    HOOKS_CALL(event, event);
    shadow_unlock();
}

void hooks_see_form(const struct calls_form_mistake *mistake)
{
    enum shadow_kind kind = mistake->kind == CALLS_FORM_CONSUMED ? SHADOW_CQ : SHADOW_QP;
    shadow_lock();
    const struct shadow *shadow = shadow_find(kind, mistake->object);
    if (shadow)
        HOOKS_CALL(formed, shadow, mistake);
    shadow_unlock();
}

void hooks_see_place(const struct place *here, const char *call)
{
    if (!here->in_signal)
        return;
    shadow_lock();
    HOOKS_CALL(in_signal, call);
    shadow_unlock();
}

void hooks_see_use_in_child(enum shadow_kind kind, const void *handle, const char *call)
{
    shadow_lock();
    const struct shadow *shadow = shadow_find(kind, handle);
    if (shadow && shadow->process != getpid())
        HOOKS_CALL(used_by_child, shadow, call);
    shadow_unlock();
}

bool hooks_is_gone(enum shadow_kind kind, const void *handle, const char *call)
{
    shadow_lock();
    const struct shadow *gone = shadow_find(kind, handle) ? NULL : shadow_find_gone(kind, handle);
    if (gone)
        HOOKS_CALL(used_gone, gone, call);
    shadow_unlock();
    return gone;
}
