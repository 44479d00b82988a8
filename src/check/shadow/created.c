#include "check/shadow/created.h"

struct shadow *created_enter(enum shadow_kind kind, const void *handle, const struct ibv_context *context,
                             struct calls_subject subject)
{
    struct place here;
    place_here(&here);
    hooks_see_place(&here, "A call that makes an object");
    if (kind == SHADOW_CQ || kind == SHADOW_SRQ) /* a child may make other objects: they are in the kernel */
        hooks_see_use(SHADOW_CONTEXT, context, "A call that makes a queue");
    shadow_lock();
    struct shadow *shadow = shadow_add(kind, handle, subject.number, &here);
    if (shadow)
        shadow->context = context;
    return shadow;
}

const void *created_td_of(const struct ibv_pd *pd)
{
    shadow_assert_locked();
    const struct shadow *shadow = pd ? shadow_find(SHADOW_PD, pd) : NULL;
    return shadow ? shadow->td : NULL;
}

int created_result(int result, const char *call)
{
    if (result)
        hooks_refused(call, result > 0 ? result : errno);
    return result;
}
