/* Progress by threads of the program that find nothing to do: they poll, claim that they go on, and hand over to the
 * helper before they block (helper.h). Thread-safe. */
#ifndef PROCESS_POLLER_H
#define PROCESS_POLLER_H

#include "process/process.h"

enum {
    CLAIM_ROUNDS = 512,          /* rounds after which pollers are believed to go on: some ten microseconds */
    CLAIM_ROUNDS_MOST = 1 << 16, /* the same for a program that disappointed that belief again and again */
};

/* Makes progress unless another thread does. For callers that find nothing to do. */
void poller_poll(struct process *);

/* The caller is about to block: from now on doorbells ring. */
void poller_handover(struct process *);

/* The program is inside verbs: the helper judges by this whether pollers are hot. A lost count among threads does no
 * harm. */
static inline void poller_active(struct process *process)
{
    uint32_t rounds = atomic_load_explicit(&process->poller.rounds, memory_order_relaxed);
    atomic_store_explicit(&process->poller.rounds, rounds + 1, memory_order_relaxed);
}

/* Work of the program has ended without a packet, so polling is not fruitless: the next yield is as far away as after a
 * packet that came. */
static inline void poller_has_worked(struct process *process)
{
    atomic_store_explicit(&process->poller.fruitless, 0, memory_order_relaxed);
}

#endif
