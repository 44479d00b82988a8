/* What the contexts of this process share: the node on the host, the helper thread, and progress.
 *
 * The one who waits, wakes: a thread that polls an empty CQ drives progress itself (process_poll). The helper thread
 * sleeps and works only when nobody polls. Three states:
 *   asleep   nobody promised to look; senders ring the doorbell, which wakes the helper
 *   working  the helper looks, and goes on for some microseconds after the last work, then asleep
 *   polled   pollers are hot: doorbells are off, the helper only checks once in a while that they still poll
 * A poller claims `polled` after many rounds, and gives it back when it arms a CQ (process_handover), because it is
 * about to block. The helper looks after it: first soon, then ever more rarely while the program keeps calling verbs.
 * So an idle process sleeps for ever, a hot one is left alone by its helper, and a poller that just stops costs its
 * peers one tick and is believed less readily the next time. */
#ifndef VERBS_PROCESS_H
#define VERBS_PROCESS_H

#include "verbs/object.h"

/* The process, joined or made by the first call; counts its users. NULL and errno. Thread-safe. */
struct process *process_join(void);
void process_leave(struct process *);

/* Makes progress unless another thread is at it. Called by whoever finds nothing to do. */
void process_poll(struct process *);

/* The program is inside verbs: what the helper goes by when it judges whether pollers are hot. A lost count among
 * threads does no harm. */
static inline void process_active(struct process *process)
{
    uint32_t rounds = atomic_load_explicit(&process->rounds, memory_order_relaxed);
    atomic_store_explicit(&process->rounds, rounds + 1, memory_order_relaxed);
}

/* NULL: it has left the host, or is a child's copy. */
static inline struct node *process_node(const struct process *process)
{
    return atomic_load(&process->forked) ? NULL : process->node;
}

/* The caller is about to block: from now on doorbells ring. */
void process_handover(struct process *);

/* Returns when no progress that runs now, and none that began before the call, is under way. */
void process_quiesce(struct process *);

#endif
