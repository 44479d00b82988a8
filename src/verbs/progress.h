/* One round of progress, for pollers and the helper (progress.c), and what queue pairs ask of it. */
#ifndef VERBS_PROGRESS_H
#define VERBS_PROGRESS_H

#include "verbs/object.h"

/* Receives, lets queue pairs transmit that had reason or got room, fails those whose CQ overran. Under
 * process->progress. Returns how much happened. `ack_later`: an ACK may wait until the next round, since the program
 * will most likely post what can take it along; somebody will see to the next round (process->owing). */
unsigned progress_round(struct process *, bool ack_later);

/* Expires what is due, and returns when to look again. Under process->progress. */
nanos progress_timers(struct process *, nanos now);

/* How often those that wait for room in a link ask whether its receiver still lives. */
#define PROGRESS_LIVENESS (50 * NANOS_MILLISECOND)

/* Sees to it that the helper looks at the timers at this time. */
void progress_look_again(struct process *, nanos when);

/* The helper looks at the queue pair's deadlines at this time at the latest, and from then on for as long as it has any.
 * Whoever sets a deadline calls this; nobody asks for deadlines after the fact. Under qp->lock. */
void progress_watch(struct qp *, nanos deadline);

/* The process ends: what waits for the next round leaves now. Under process->progress. */
void progress_settle(struct process *);

/* Takes the queue pair out of every list. Under process->progress. */
void progress_forget(struct qp *);

#endif
