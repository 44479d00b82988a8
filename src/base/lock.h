/* A lock of one word for sections of some tens of nanoseconds, the length of everything on the data path.
 *
 * Taking a free lock costs one atomic exchange and releasing it a plain store, about a third of what a pthread mutex
 * costs. A thread that waits for a preempted holder calls sched_yield, then sleeps briefly, so that two processors
 * never burn a time slice on each other and a waiter of a higher real-time priority cannot starve the holder. Not
 * recursive. It uses C11 atomics only, so ThreadSanitizer understands it. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/likely.h"
#include "base/lock_order.h"
#include "base/uncancelled.h"

/* Builds with sanitizers, and those with the option lock_checks, know which thread holds a lock and in which order a
 * thread took its locks (base/lock_order.h). They end the process where a function is called without the lock that it
 * needs, and where a lock is taken in a wrong order. In other builds the checks do not exist. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LOCK_CHECKS 1
#elif defined(__clang__) /* gcc defines the macros above; since version 14 it knows __has_feature, too */
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LOCK_CHECKS 1
#endif
#endif

#ifdef LOCK_CHECKS
#include "base/lock_checks.h"
#define LOCK_CHECK struct lock_check check;
#define LOCK_CHECK_INITIAL(order) .check = {.rank = (order)}
#else
#define LOCK_CHECK
#define LOCK_CHECK_INITIAL(order)
#endif
#define LOCK_INITIAL(order)                                                                                            \
    {                                                                                                                  \
        .taken = 0, LOCK_CHECK_INITIAL(order)                                                                          \
    }
#define MUTEX_INITIAL(order)                                                                                           \
    {                                                                                                                  \
        .mutex = PTHREAD_MUTEX_INITIALIZER, LOCK_CHECK_INITIAL(order)                                                  \
    }

struct lock {
    atomic_uchar taken;
    LOCK_CHECK
};

/* A mutex for work that may take long, with the same checks. */
struct mutex {
    pthread_mutex_t mutex;
    LOCK_CHECK
};

/* The notes about a lock in builds that check locks: its rank; that a thread is about to wait for it; that this thread
 * took it, and is about to release it. */
#ifdef LOCK_CHECKS
#define lock_set_rank(lock, order) ((void)((lock)->check.rank = (order)))
#define lock_check_order(lock) lock_check_before(&(lock)->check)
#define lock_check_taken(lock) lock_check_enter(&(lock)->check)
#define lock_check_released(lock) lock_check_leave(&(lock)->check)
/* Asserts that the calling thread holds the lock or mutex. */
#define lock_assert_held(lock) lock_check_held(&(lock)->check)
#else
#define lock_set_rank(lock, order) ((void)0)
#define lock_check_order(lock) ((void)0)
#define lock_check_taken(lock) ((void)0)
#define lock_check_released(lock) ((void)0)
#define lock_assert_held(lock) ((void)0)
#endif

static inline bool lock_try(struct lock *lock)
{
    bool taken = !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
                 !atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);
    if (taken)
        lock_check_taken(lock);
    return taken;
}

enum { LOCK_SPINS = 64, LOCK_SLEEPS = 256 }; /* the step of a wait that is the first to yield, the first to sleep */
enum { LOCK_TAKEN = 1, LOCK_WANTED = 2 };    /* WANTED: it is taken, and a thread that waits for it sleeps */

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

/* A separate function, so that a caller that finds the lock free saves no registers. A thread that has slept takes it
 * as WANTED, although no other may want it, and sets TAKEN at once; another thread that sleeps marks it anew. */
cold __attribute__((unused)) static void lock_wait_for(struct lock *lock)
{
    unsigned round = 0;
    while (atomic_exchange_explicit(&lock->taken, round < LOCK_SLEEPS ? LOCK_TAKEN : LOCK_WANTED, memory_order_acquire))
        lock_wait(round++);
    if (round >= LOCK_SLEEPS)
        atomic_store_explicit(&lock->taken, LOCK_TAKEN, memory_order_relaxed);
}

static inline void lock_take(struct lock *lock)
{
    lock_check_order(lock);
    if (unlikely(atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire)))
        lock_wait_for(lock);
    lock_check_taken(lock);
}

static inline void lock_release(struct lock *lock)
{
    lock_check_released(lock);
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* lock_release for a thread that holds the lock for long and takes it again at once: without a pause, a waiter that
 * looks every 50 or 100 us whether the lock is free may have to do so for seconds. True: a thread waits, so call
 * lock_let_others_in when no lock is held. */
static inline bool lock_release_wanted(struct lock *lock)
{
    bool wanted = atomic_load_explicit(&lock->taken, memory_order_relaxed) == LOCK_WANTED;
    lock_release(lock);
    return wanted;
}

/* Sleeps longer than a waiter's nap. No lock is looked at: it may have been freed with its object. */
cold __attribute__((unused)) static void lock_let_others_in(void)
{
    enum { NAPS = 2 };
    for (int nap = 0; nap < NAPS; nap++)
        lock_wait(LOCK_SLEEPS);
}

/* Releases a lock in the child of a fork, where the thread that held it does not exist. A free lock is not written: a
 * child copies the pages that it writes. */
static inline void lock_inherit(struct lock *lock)
{
    if (atomic_load_explicit(&lock->taken, memory_order_relaxed))
        lock_release(lock);
}

static inline void mutex_initialize(struct mutex *mutex, enum lock_rank rank)
{
    pthread_mutex_init(&mutex->mutex, NULL);
    lock_set_rank(mutex, rank);
}

static inline void mutex_take(struct mutex *mutex)
{
    lock_check_order(mutex);
    pthread_mutex_lock(&mutex->mutex);
    lock_check_taken(mutex);
}

static inline bool mutex_try(struct mutex *mutex)
{
    bool taken = !pthread_mutex_trylock(&mutex->mutex);
    if (taken)
        lock_check_taken(mutex);
    return taken;
}

static inline void mutex_release(struct mutex *mutex)
{
    lock_check_released(mutex);
    pthread_mutex_unlock(&mutex->mutex);
}
