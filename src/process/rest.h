/* The beginning and the end of the helper's sleep. Before it sleeps, it says so, and then looks once more at all that
 * would not wake it: at the rings (link/doorbell.h), and at the queues that programs write in memory, whose doorbell
 * registers it closes before (mlx5/queues/registers.h). */
#pragma once

#include <stdbool.h>

#include "base/likely.h"
#include "process/process.h"

static inline bool rest_has_queues(const struct process *process)
{
    return unlikely(atomic_load_explicit(&process->helper.queues, memory_order_acquire));
}

/* Takes the work that the program has written into queues in memory; returns how much. */
unsigned rest_look(struct process *, nanos now);

/* Looks at the queues of a process that has some: an adapter has read what was posted before a key or a queue pair
 * goes. Of a process that is NULL, as its context is closed, there are none. Under no lock. */
void rest_look_first(struct process *);

/* Prepares a sleep on node_fd. False: there is work, or something would not wake the helper, so it does not sleep.
 * `closes`: it closes the registers, as the process has queues, unless the sleep ends by itself so soon that it need
 * not end by a store. `found`: how much work its last look has taken. */
bool rest_begin(struct process *, bool closes, nanos now, unsigned *found);

/* Ends that, whatever it returned; the helper looks at all again before it begins the next one. True: a store has found
 * the registers closed, and is about to be executed, or they could not be closed: the next sleeps are short. */
bool rest_end(struct process *, bool closes);
