/* One thread of a process at a time, without a lock: lines of the log come from everywhere, also under every lock and
 * out of signal handlers, so no thread waits there for another. */
#ifndef DIAG_ALONE_H
#define DIAG_ALONE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The process whose thread is within; 0: none. A child of a fork may find its parent's number, which means nothing. */
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
            return true; /* of a thread that the fork left behind */
    }
    return false;
}

static inline void alone_leave(alone *who)
{
    atomic_store(who, 0);
}

#endif
