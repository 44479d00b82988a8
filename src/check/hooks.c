#include "check/hooks.h"

#include <unistd.h>

const struct hooks *const hooks_all[] = {
#define RULES_OF(file) &rules_##file,
#include "check/rules.def"
};

const unsigned hooks_count = sizeof hooks_all / sizeof *hooks_all;

void hooks_refused(const char *call, int error)
{
    shadow_lock();
    HOOKS_CALL(refused_call, call, error);
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
