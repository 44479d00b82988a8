/* A lock of one word for sections of some tens of nanoseconds, the length of everything on the data path.
 *
 * Taking it free costs one atomic exchange and releasing it a plain store, about a third of a pthread mutex. A holder
 * that was preempted is waited for with sched_yield, then in short sleeps, so that two processors never burn a time
 * slice on each other and a waiter of a higher real-time priority cannot starve the holder.
 * Not recursive. Written with C11 atomics only, so ThreadSanitizer understands it. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/uncancelled.h"

struct lock {
    atomic_uchar taken;
};

#define LOCK_INITIAL {0}

static inline bool lock_try(struct lock *lock)
{
    return !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);
}

/* Waits one step; `round` counts the steps of this wait. */
static inline void lock_wait(unsigned round)
{
    enum { SPINS = 64, YIELDS = 256 };
    if (round < SPINS) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return;
    }
    if (round < YIELDS) {
        sched_yield();
        return;
    }
    int before = uncancelled_begin();
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    uncancelled_end(before);
}

static inline void lock_take(struct lock *lock)
{
    for (unsigned round = 0; atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire); round++)
        lock_wait(round);
}

static inline void lock_release(struct lock *lock)
{
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif
