/* One round of progress, for pollers and the helper (progress.c), and what endpoints ask of it. */
#ifndef PROCESS_PROGRESS_H
#define PROCESS_PROGRESS_H

#include "process/process.h"

/* Receives, lets endpoints transmit that had reason or got room, fails those whose CQ overran. Under process->progress.
 * Returns how much happened. `ack_later`: an ACK may wait until the next round, since the program will most likely post
 * a packet that can carry it; a thread ensures the next round (loop.owing). */
unsigned progress_round(struct process *, bool ack_later);

/* The same for callers that do not hold that lock; nothing waits for a next round. */
unsigned progress_work(struct process *);

/* Returns when no progress that runs now, and none that began before the call, is under way. */
void progress_quiesce(struct process *);

/* For a thread that polls and leaves all work to the helper, which is within the driver's call of this number
 * (foreign_waiting) and can't report that it does not end: logs it once after two seconds. Thread-safe. */
void progress_watch_copies(struct process *, uint32_t copies);

/* Expires what is due, and returns when to look again. Under process->progress. */
nanos progress_timers(struct process *, nanos now);

/* How often those that wait for room in a link ask whether its receiver still lives. */
#define PROGRESS_LIVENESS (50 * NANOS_MILLISECOND)

/* The initial lists and timers of a new process. */
void progress_begin(struct process *, void (*wake_up)(struct schedule *));

/* The process ends: output that waits for the next round leaves now. Under process->progress. */
void progress_settle(struct process *);

/* A packet for this endpoint, which is then seen to if it has output. Under process->progress, in a round. */
void progress_deliver(struct process *, struct endpoint *, const struct endpoint_arrival *);

/* Calls visit for the endpoint of every stand-in (struct guest), and lets it transmit. Under process->progress. */
void progress_guests(struct process *, void (*visit)(void *endpoint, void *context), void *context);

/* Takes the endpoint out of every list, and stops its timer. Under process->progress. */
void progress_forget(struct process *, struct endpoint *);

#endif
