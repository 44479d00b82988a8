#include "verbs/memory/quiesce.h"

#include "process/progress.h"
#include "process/restraints.h"
#include "verbs/object/process_objects.h"

static void wait_for_locks(const struct object_list *list)
{
    const struct object_class *class = object_class_of(list);
    struct object *object;
    if (class && class->quiesce)
        LIST_FOREACH (object, list, siblings)
            class->quiesce(object);
}

void quiesce_memory(struct process *process)
{
    lock_assert_held(&process->control);
    struct context *each;
    LIST_FOREACH (each, &process_objects(process)->contexts, siblings)
        for (enum object_kind kind = 0; kind < OBJECT_KINDS; kind++)
            wait_for_locks(&each->objects[kind]);
    /* Substitutes (xrc_substitute.h) are in no list, and run under progress, under which a driver copies, too. */
    if (atomic_load(&process->loop.has_guests) || restraints_leave_all(process))
        progress_quiesce(process);
}
