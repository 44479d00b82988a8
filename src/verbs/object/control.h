/* The lock under which objects are made and destroyed: process->control, for the objects of a context. */
#pragma once

#include "base/uncancelled.h"
#include "verbs/object/process_objects.h"

/* No thread is cancelled between lock and unlock. A closed context whose objects the program still names has no process
 * and no lock: object_leave refuses these objects. */
static inline void control_lock(struct context *context)
{
    if (!context->process)
        return;
    int before = uncancelled_begin();
    mutex_take(&context->process->control);
    context->process->cancellation = before;
}

static inline void control_unlock(struct context *context)
{
    if (!context->process)
        return;
    int before = context->process->cancellation;
    mutex_release(&context->process->control);
    uncancelled_end(before);
}
