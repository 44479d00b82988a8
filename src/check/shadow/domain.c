#include "check/shadow/domain.h"

#include <pthread.h>

static uintptr_t self(void)
{
    return (uintptr_t)pthread_self();
}

static struct shadow *domain_of(const struct shadow *shadow)
{
    shadow_assert_locked();
    return shadow && shadow->td ? shadow_find(SHADOW_TD, shadow->td) : NULL;
}

void domain_enter(const struct shadow *shadow, const char *call)
{
    struct shadow *td = domain_of(shadow);
    if (!td)
        return;
    if (td->domain.inside && td->domain.inside != self()) {
        HOOKS_CALL(shared, td, call);
        return;
    }
    td->domain.inside = self();
    td->domain.depth++;
}

void domain_leave(const struct shadow *shadow)
{
    struct shadow *td = domain_of(shadow);
    if (td && td->domain.inside == self() && !--td->domain.depth)
        td->domain.inside = 0;
}
