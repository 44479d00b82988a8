#include "verbs/life/quiesce.h"

#include "process/progress.h"
#include "verbs/qp/qp.h"

static void wait_for_locks(const struct object_list *list)
{
    struct object *object;
    LIST_FOREACH (object, list, siblings) {
        struct qp *qp = qp_real((struct qp *)((char *)object - offsetof(struct qp, object)));
        lock_take(&qp->lock);
        lock_release(&qp->lock);
    }
}

void quiesce_memory(struct process *process)
{
    lock_assert_held(&process->control);
    struct context *each;
    LIST_FOREACH (each, &process->contexts, siblings) {
        wait_for_locks(&each->objects[OBJECT_QP]);
        wait_for_locks(&each->objects[OBJECT_WQ]); /* which have a queue pair inside */
    }
    if (atomic_load(&process->loop.has_guests)) /* stand-ins (xrc_standin.h) are in no list, and run under progress */
        progress_quiesce(process);
}
