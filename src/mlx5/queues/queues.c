#include "mlx5/queues/queues.h"

#include <errno.h>

#include "base/likely.h"
#include "mlx5/queues/judge.h"
#include "mlx5/queues/registers.h"
#include "process/progress.h"
#include "verbs/object/control.h"

int queues_begin(struct context *context)
{
    struct process *process = context->process;
    control_lock(context);
    bool made = registers_make();
    if (made && !atomic_load(&process->helper.queues)) {
        atomic_store(&process->helper.queues, true);
        progress_quiesce(process);
        node_wake(process->node); /* pollers may have claimed the progress, and switched the doorbells off */
    }
    control_unlock(context);
    return made ? 0 : ENOMEM;
}

int queues_enter_ring(struct context *context, struct send_ring *ring)
{
    struct process *process = context->process;
    control_lock(context);
    int error = rkeys_enter(process_objects(process)->keys, &ring->region);
    if (!error) {
        lock_take(&process->progress);
        LIST_INSERT_HEAD(&process_objects(process)->queues.sends, ring, siblings);
        lock_release(&process->progress);
    }
    control_unlock(context);
    return error;
}

void queues_remove_ring(struct process *process, struct send_ring *ring)
{
    lock_assert_held(&process->progress);
    LIST_REMOVE(ring, siblings);
    rkeys_remove(process_objects(process)->keys, &ring->region);
}

void queues_enter_memory(struct context *context, struct cq_memory *memory)
{
    struct process *process = context->process;
    control_lock(context);
    lock_take(&process->progress);
    LIST_INSERT_HEAD(&process_objects(process)->queues.completions, memory, siblings);
    lock_release(&process->progress);
    control_unlock(context);
}

void queues_wake(struct process *process)
{
    node_wake(process->node);
}

unsigned queues_look(struct process *process, nanos now)
{
    lock_assert_held(&process->progress);
    struct queues *queues = &process_objects(process)->queues;
    struct cq_memory *memory;
    struct send_ring *ring;
    unsigned found = 0;
    LIST_FOREACH (ring, &queues->sends, siblings)
        if (send_ring_has_work(ring))
            found += send_ring_take(ring, now);
    LIST_FOREACH (memory, &queues->completions, siblings) {
        found += cq_memory_look(memory);
        if (unlikely(judge_is_wanted()))
            judge_consumed(memory);
    }
    return found;
}

cold static void tell_mistakes(struct process *process)
{
    struct calls_form_mistake taken[JUDGE_NOTES];
    lock_take(&process->progress);
    unsigned number = judge_take(taken);
    lock_release(&process->progress);
    for (unsigned i = 0; i < number; i++)
        calls_form_mistaken(&taken[i]);
}

void queues_tell(struct process *process)
{
    if (unlikely(judge_is_wanted()))
        tell_mistakes(process);
}

bool queues_close(struct process *process)
{
    lock_assert_held(&process->progress);
    return registers_close(process->node);
}

bool queues_open(struct process *process)
{
    lock_assert_held(&process->progress);
    return registers_open();
}
