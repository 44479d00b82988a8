/* Wakes, at the end of a round, threads of the program that sleep on the descriptors of completion channels. These are
 * written when the round has answered and holds only the progress lock. A thread woken in the midst of the round would
 * first meet the locks that the round holds, which costs two switches where both share a processor, and would then wait
 * for the answers (cq_wait_for_responses). */
#ifndef PROCESS_WAKEUPS_H
#define PROCESS_WAKEUPS_H

#include <stdint.h>
#include <sys/queue.h>

#include "process/event_pipe.h"

struct process;

struct wakeup {
    STAILQ_ENTRY(wakeup) next; /* in loop.wakeups */
    struct event_pipe pipe;    /* its owner opens and closes it */
    uint32_t count;            /* to be added to it; 0: it is not in the list. Of the thread whose round it is */
};

STAILQ_HEAD(wakeup_list, wakeup);

/* Adds one to the pipe: when this thread's round ends, or else at once. Its owner takes the progress once, after
 * the last call and before it closes the pipe. Thread-safe; never blocks. */
void wakeups_add(struct process *, struct wakeup *);

/* Call it before another descriptor is written, an event channel's or that of asynchronous events: writes the
 * descriptors that this thread's round has added, if it is in one, so that a program receives events in their order: a
 * message before the end of its connection. Thread-safe; never blocks. */
void wakeups_flush(struct process *);

/* The calling thread begins a round, and has answered. Under process->progress. */
void wakeups_begin(struct process *);
void wakeups_end(struct process *);

#endif
