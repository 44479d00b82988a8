/* A lock of one word for sections of some tens of nanoseconds, the length of everything on the data path.
 *
 * Taking it free costs one atomic exchange and releasing it a plain store, about a third of a pthread mutex. A holder
 * that was preempted is waited for with sched_yield, then in short sleeps, so that two processors never burn a time
 * slice on each other and a waiter of a higher real-time priority cannot starve the holder.
 * Not recursive. Written with C11 atomics only, so ThreadSanitizer understands it. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/uncancelled.h"

/* Builds with sanitizers know who holds a lock, and end the process where a function is called without the one that it
 * needs (lock_assert_held); others pay nothing for it. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LOCK_OWNERS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LOCK_OWNERS 1
#endif
#endif

struct lock {
    atomic_uchar taken;
#ifdef LOCK_OWNERS
    _Atomic(pthread_t) owner;
#endif
};

#define LOCK_INITIAL                                                                                                   \
    {                                                                                                                  \
        0                                                                                                              \
    }

static inline void lock_set_owner(struct lock *lock, bool held)
{
#ifdef LOCK_OWNERS
    atomic_store_explicit(&lock->owner, held ? pthread_self() : 0, memory_order_relaxed);
#endif
}

/* The calling thread holds it. */
static inline void lock_assert_held(const struct lock *lock)
{
#ifdef LOCK_OWNERS
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != pthread_self())
        __builtin_trap();
#endif
}

static inline bool lock_try(struct lock *lock)
{
    bool taken = !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
                 !atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);
    if (taken)
        lock_set_owner(lock, true);
    return taken;
}

enum { LOCK_SPINS = 64, LOCK_SLEEPS = 256 }; /* the steps from which a wait no longer spins, no longer yields */

/* Waits one step; `round` counts the steps of this wait. */
static inline void lock_wait(unsigned round)
{
    if (round < LOCK_SPINS) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return;
    }
    if (round < LOCK_SLEEPS) {
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
    lock_set_owner(lock, true);
}

static inline void lock_release(struct lock *lock)
{
    lock_set_owner(lock, false);
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* In the child of a fork: the thread that held it, if any, does not exist here. Written only if it must be: what a
 * child writes, it copies. */
static inline void lock_inherit(struct lock *lock)
{
    if (atomic_load_explicit(&lock->taken, memory_order_relaxed))
        lock_release(lock);
}

#endif
