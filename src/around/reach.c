#include "around/reach.h"

#include <stddef.h>

static const char *device_of(const struct calls_subject *subject)
{
    const struct ibv_context *context = script_reach_context(subject);
    if (script_reach_is(subject, "device"))
        return subject->object ? ((const struct ibv_device *)subject->object)->name : NULL;
    return context ? context->device->name : NULL;
}

const struct script_reach around_reach = {.device = device_of};
