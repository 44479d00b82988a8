#include "verbs/context/inherit.h"

#include "base/lock.h"
#include "runtime/qpns.h"
#include "verbs/kinds/ethernet/steering.h"
#include "verbs/kinds/xrc/xrc_substitute.h"
#include "verbs/kinds/xrc/xrcd.h"
#include "verbs/object/process_objects.h"

static void inherit_list(const struct object_list *list)
{
    const struct object_class *class = object_class_of(list);
    struct object *object;
    if (class && class->inherit)
        LIST_FOREACH (object, list, siblings)
            class->inherit(object);
}

static void inherit_context(struct context *context)
{
    lock_inherit(&context->async.lock);
    for (enum object_kind kind = 0; kind < OBJECT_KINDS; kind++)
        inherit_list(&context->objects[kind]);
}

void inherit_process(struct process *process)
{
    struct context *context;
    LIST_FOREACH (context, &process_objects(process)->contexts, siblings)
        inherit_context(context);
    qpns_close(process->numbers);
    qpns_close(process_objects(process)->srqs);
    steering_inherit(process);
    xrc_substitutes_inherit(process);
    xrcd_inherit(process);
}
