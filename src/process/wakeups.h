/* Wakes, at the end of a round, threads of the program that sleep on the descriptors of completion channels. These are
 * written when the round has answered and holds only the progress lock. A thread woken in the midst of the round would
 * first meet the locks that the round holds, which costs two switches where both share a processor, and would then wait
 * for the answers (cq_wait_for_responses). */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "process/event_pipe.h"

struct process;

struct wakeup {
    STAILQ_ENTRY(wakeup) next; /* in loop.wakeups */
    struct event_pipe pipe;    /* its owner opens and closes it */
    uint32_t count;            /* bytes to add; 0: not in the list. Only of the thread whose round it is */
    _Atomic uint32_t added;    /* how often wakeups_add was called */
};

STAILQ_HEAD(wakeup_list, wakeup);

/* Adds a byte to the pipe: when this thread's round ends, or at once if it is in no round. The pipe's owner takes
 * the progress once, after the last call and before it closes the pipe. Thread-safe; never blocks. */
void wakeups_add(struct process *, struct wakeup *);

/* Writes the descriptors that this thread's round has added, if it is in one. Call it before another descriptor is
 * written, an event channel's or the one of asynchronous events, so that a program receives events in their order: a
 * message before the end of its connection. Thread-safe; never blocks. */
void wakeups_flush(struct process *);

/* Called when the calling thread begins a round, and when it has answered. Under process->progress. */
void wakeups_begin(struct process *);
void wakeups_end(struct process *);
