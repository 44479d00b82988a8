#include "check/hooks.h"

const struct hooks *const hooks_all[] = {
#define RULES_OF(file) &rules_##file,
#include "check/rules.def"
};

const unsigned hooks_count = sizeof hooks_all / sizeof *hooks_all;

bool hooks_is_gone(enum shadow_kind kind, const void *handle, const char *call)
{
    shadow_lock();
    const struct shadow *gone = shadow_find(kind, handle) ? NULL : shadow_find_gone(kind, handle);
    if (gone)
        HOOKS_CALL(used_gone, gone, call);
    shadow_unlock();
    return gone;
}
