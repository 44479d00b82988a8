/* Threads of the program that wait for an event of a completion channel: they sleep in the helper's place, so that a
 * message wakes one thread instead of two. Whatever is not as such a thread needs it is left to the helper, as when the
 * program waits by poll(2).
 *
 * The doorbell wakes a thread only while it waits in epoll_wait (ipc/node.h), and the helper at all other moments: a
 * thread that is stopped, computes or ends holds nobody up. A thread that was woken makes the rounds that the helper
 * would make, and lets doorbells ring again before it waits again or returns. */
#pragma once

#include <stdatomic.h>

#include "process/wakeups.h"

struct sleeper {
    struct wakeup wakeup; /* what wakes it */
    atomic_int epoll;     /* 0: not opened yet; -1: it can't be */
};

/* Sleeps until the descriptor, of a pipe, is readable, or until something else ends the sleep; then the caller reads
 * it. Returns 0, or EINTR as read(2) would have ended: a signal's handler without SA_RESTART has run. A cancellation
 * point. Without locks. */
int sleepers_wait(struct process *, struct sleeper *, int fd);

/* The sleeper's channel is destroyed. Under process->control. */
void sleepers_close(struct process *, struct sleeper *);
