/* The queues in memory of the process, at which its helper looks. */
#pragma once

#include <stdbool.h>

#include "mlx5/queues/cq_memory.h"
#include "mlx5/queues/send_ring.h"

struct context;
struct process;

/* Lets the helper look at queues from now on, and makes the registers. 0 or an errno. Without locks. */
int queues_begin(struct context *);

/* Enter a queue, at which the helper looks from then on. The blocks of a ring are a region, whose key no program has. 0
 * or ENOMEM. Without locks. */
int queues_enter_ring(struct context *, struct send_ring *);
void queues_enter_memory(struct context *, struct cq_memory *);
/* Removes a ring. Under process->control and process->progress. */
void queues_remove_ring(struct process *, struct send_ring *);

/* Lets the helper look at the queues soon. Under any lock. */
void queues_wake(struct process *);

/* The functions of struct process_parts. Under process->progress, except queues_tell. */
unsigned queues_look(struct process *, nanos now);
void queues_tell(struct process *);
bool queues_close(struct process *);
bool queues_open(struct process *);
