#include "around/reach.h"

#include <stddef.h>

#include "around/turned.h"

static const char *device_of(const struct calls_subject *subject)
{
    const struct ibv_context *context = script_reach_context(subject);
    if (script_reach_is(subject, "device"))
        return subject->object ? ((const struct ibv_device *)subject->object)->name : NULL;
    return context ? context->device->name : NULL;
}

const struct script_reach around_reach = {.device = device_of,
                                          .post_send = turned_post_send,
                                          .post_recv = turned_post_recv,
                                          .post_srq_recv = turned_post_srq_recv,
                                          .build_begin = turned_build_begin,
                                          .build_end = turned_build_end,
                                          .prepare = turned_prepare};
