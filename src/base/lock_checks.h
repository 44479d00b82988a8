/* The records of builds that check locks. Only base/lock.h includes them, in such builds. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "base/lock_order.h"

struct lock_check {
    _Atomic(pthread_t) owner; /* 0: no thread holds it */
    uint8_t rank;             /* enum lock_rank */
};

enum { LOCK_HELD_MOST = 32 };

/* The locks that a thread holds. Weak, so that all translation units of a program or library share the one definition.
 * A program may leave its lock (LOCK_PROGRAM) taken when it destroys the object: then the address that remains in this
 * list is never read, and its rank forbids nothing. */
struct lock_thread {
    struct {
        const struct lock_check *check;
        uint8_t rank;
    } held[LOCK_HELD_MOST];
    unsigned count;
};
__attribute__((weak)) _Thread_local struct lock_thread lock_thread;

static inline void lock_check_fails(const char *what, unsigned rank, unsigned held)
{
    fprintf(stderr, "softverbs: %s: the lock of rank %u (held: %u), see base/lock_order.h\n", what, rank, held);
    __builtin_trap();
}

static inline void lock_check_before(const struct lock_check *check)
{
    for (unsigned i = 0; check->rank && i < lock_thread.count; i++)
        if (lock_thread.held[i].rank > check->rank ||
            (lock_thread.held[i].rank == check->rank && check->rank != LOCK_PROGRAM))
            lock_check_fails("locks are taken in a wrong order", check->rank, lock_thread.held[i].rank);
}

static inline void lock_check_enter(struct lock_check *check)
{
    atomic_store_explicit(&check->owner, pthread_self(), memory_order_relaxed);
    if (lock_thread.count < LOCK_HELD_MOST) {
        lock_thread.held[lock_thread.count].check = check;
        lock_thread.held[lock_thread.count++].rank = check->rank;
    }
}

/* Locks may be released in any order. The child of a fork also releases locks that threads of the parent held. */
static inline void lock_check_leave(struct lock_check *check)
{
    atomic_store_explicit(&check->owner, 0, memory_order_relaxed);
    for (unsigned i = lock_thread.count; i--;)
        if (lock_thread.held[i].check == check) {
            lock_thread.held[i] = lock_thread.held[--lock_thread.count];
            return;
        }
}

static inline void lock_check_held(const struct lock_check *check)
{
    if (atomic_load_explicit(&check->owner, memory_order_relaxed) != pthread_self())
        lock_check_fails("a function is called without the lock that it needs", check->rank, 0);
}
