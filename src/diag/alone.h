/* Lets in one thread of a process at a time, without a lock: lines of the log are written everywhere, also under every
 * lock and in signal handlers, so no thread waits for another there. */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The process whose thread is within; 0: no thread. In a fork's child it may be the parent's number, which is ignored.
 */
typedef _Atomic pid_t alone;

/* `pid` is the caller's process. False: another thread has been within for long. */
static inline bool alone_enter(alone *who, pid_t pid)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++, sched_yield()) {
        pid_t found = 0;
        if (atomic_compare_exchange_strong(who, &found, pid))
            return true;
        if (found != pid && atomic_compare_exchange_strong(who, &found, pid))
            return true; /* the thread that was within is the parent's */
    }
    return false;
}

static inline void alone_leave(alone *who)
{
    atomic_store(who, 0);
}
