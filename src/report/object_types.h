/* A loop over the objects of a process, with the headers of all their types. */
#pragma once

#include "base/container.h"
#include "verbs/memory/mr.h"
#include "verbs/object/process_objects.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"

/* Visits all objects of a kind; `context` is the context of the object. Under process->control. */
#define EACH_OBJECT(process, kind, object)                                                                             \
    for (struct context *context = LIST_FIRST(&process_objects(process)->contexts); context;                           \
         context = LIST_NEXT(context, siblings))                                                                       \
        for (struct object *object = LIST_FIRST(&context->objects[kind]); object; object = LIST_NEXT(object, siblings))
