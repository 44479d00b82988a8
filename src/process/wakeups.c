#include "process/wakeups.h"

#include <pthread.h>

#include "process/process.h"

/* Only the thread itself can find that the round is its own, so it reads its own stores here. */
static bool wakeups_in_round(const struct process *process)
{
    return atomic_load_explicit(&process->loop.deliverer, memory_order_relaxed) == (uintptr_t)pthread_self();
}

void wakeups_add(struct process *process, struct wakeup *wakeup)
{
    atomic_fetch_add_explicit(&wakeup->added, 1, memory_order_relaxed);
    if (!wakeups_in_round(process)) {
        event_pipe_add(&wakeup->pipe, 1);
        return;
    }
    if (!wakeup->count++)
        STAILQ_INSERT_TAIL(&process->loop.wakeups, wakeup, next);
}

void wakeups_begin(struct process *process)
{
    lock_assert_held(&process->progress);
    atomic_store_explicit(&process->loop.deliverer, (uintptr_t)pthread_self(), memory_order_relaxed);
}

/* A woken thread may free the object it waited on as soon as it gets the progress, and not before. A signal handler
 * that calls wakeups_add from here on finds no round. */
void wakeups_end(struct process *process)
{
    struct wakeup *wakeup;
    lock_assert_held(&process->progress);
    atomic_store_explicit(&process->loop.deliverer, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    while ((wakeup = STAILQ_FIRST(&process->loop.wakeups))) {
        uint32_t count = wakeup->count;
        STAILQ_REMOVE_HEAD(&process->loop.wakeups, next);
        wakeup->count = 0;
        event_pipe_add(&wakeup->pipe, count);
    }
}

void wakeups_flush(struct process *process)
{
    if (!wakeups_in_round(process) || STAILQ_EMPTY(&process->loop.wakeups))
        return;
    wakeups_end(process);
    wakeups_begin(process);
}
