/* Rounds of progress, for pollers and the helper (progress.c), and the calls that endpoints make to them. */
#pragma once

#include "process/process.h"

enum { PROGRESS_FRAMES = 64 }; /* that a round takes from each peer at most */

/* Receives, lets endpoints transmit that have output or got room, fails queue pairs whose CQ overran. Under
 * process->progress. Returns how much happened. `ack_later`: an ACK may wait until the next round, since the program
 * will most likely post a packet that can carry it; a thread ensures the next round (loop.owing). */
unsigned progress_round(struct process *, bool ack_later);

/* Makes a round for callers that do not hold process->progress; no ACK waits for the next round. */
unsigned progress_work(struct process *);

/* Waits until all rounds that began before the call have ended. */
void progress_quiesce(struct process *);

/* Logs once, after two seconds, that the helper is still within the driver's call of this number (foreign_waiting),
 * which it can't report. Called by a thread that polls and leaves all work to the helper. Thread-safe. */
void progress_watch_copies(struct process *, uint32_t copies);

/* Expires the timers that are due, and returns when to look again. Under process->progress. */
nanos progress_timers(struct process *, nanos now);

/* How often endpoints that wait for room in a link ask whether its receiver still lives. */
#define PROGRESS_LIVENESS (50 * NANOS_MILLISECOND)

/* Initializes the lists and timers of a new process. */
void progress_begin(struct process *, void (*wake_up)(struct schedule *));

/* Sends output that waits for the next round, as the process ends. Under process->progress. */
void progress_settle(struct process *);

/* Delivers a packet to this endpoint, which may then transmit. Under process->progress, in a round. */
void progress_deliver(struct process *, struct endpoint *, const struct endpoint_arrival *);

/* Calls visit for the substitute of every guest (struct guest), and lets it transmit. Under process->progress. */
void progress_guests(struct process *, void (*visit)(void *endpoint, void *context), void *context);

/* Takes the endpoint out of every list, and stops its timer. Under process->progress. */
void progress_forget(struct process *, struct endpoint *);
