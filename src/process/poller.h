/* Progress by threads of the program that find nothing to do: they poll, claim that they will poll again, and hand
 * over to the helper before they block (helper.h). Thread-safe. */
#pragma once

#include "process/process.h"

enum {
    CLAIM_ROUNDS = 512,          /* rounds after which pollers may claim: some ten microseconds */
    CLAIM_ROUNDS_MOST = 1 << 16, /* the most, for a program whose claims were wrong again and again */
};

/* Makes progress unless another thread does. Called by threads that find nothing to do. */
void poller_poll(struct process *);

/* Makes doorbells ring again, as the caller is about to block. */
void poller_handover(struct process *);

/* Counts a call of verbs: the helper judges by the count whether pollers are hot. A count lost among threads is
 * harmless. */
static inline void poller_active(struct process *process)
{
    uint32_t rounds = atomic_load_explicit(&process->poller.rounds, memory_order_relaxed);
    atomic_store_explicit(&process->poller.rounds, rounds + 1, memory_order_relaxed);
}

/* Notes that polling was not fruitless, as work of the program has ended without a packet: the next yield is as far
 * away as after a packet has arrived. */
static inline void poller_has_worked(struct process *process)
{
    atomic_store_explicit(&process->poller.fruitless, 0, memory_order_relaxed);
}
