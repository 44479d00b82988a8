/* Locks that belong to no object. A thread that exists only in the parent of a fork may hold one, and would never
 * release it in the child. So all of them are in one list: a fork (process/process.c) takes each lock before it copies
 * the process, and releases them on both sides.
 *
 * LOCK_STATIC and MUTEX_STATIC define such a lock and put it into the list. The test "locks" (suite house) ensures that
 * there is no other way to define one. */
#pragma once

#include <stddef.h>

#include "base/lock.h"

struct static_lock {
    struct lock *lock;   /* NULL: it is a mutex */
    struct mutex *mutex; /* NULL: it is a lock */
    enum lock_rank rank;
};

/* The linker joins the pointers of all files, and defines where they begin and end. */
#define STATIC_LOCK_LISTED(name, ...)                                                                                  \
    static struct static_lock name##_static = {__VA_ARGS__};                                                           \
    static struct static_lock *name##_listed __attribute__((used, section("static_locks"))) = &name##_static
#define LOCK_STATIC(name, order)                                                                                       \
    static struct lock name = LOCK_INITIAL(order);                                                                     \
    STATIC_LOCK_LISTED(name, .lock = &name, .rank = (order))
#define MUTEX_STATIC(name, order)                                                                                      \
    static struct mutex name = MUTEX_INITIAL(order);                                                                   \
    STATIC_LOCK_LISTED(name, .mutex = &name, .rank = (order))

extern struct static_lock *static_locks_begin[] __asm__("__start_static_locks") __attribute__((visibility("hidden")));
extern struct static_lock *static_locks_end[] __asm__("__stop_static_locks") __attribute__((visibility("hidden")));

/* Takes a mutex as usual, but a lock by trying, which is not checked for the order: a fork holds several innermost
 * locks at once. It may, since a thread that holds an innermost lock waits for no other. */
static inline void static_lock_take(struct static_lock *listed)
{
    if (listed->mutex) {
        mutex_take(listed->mutex);
        return;
    }
    for (unsigned round = 0; !lock_try(listed->lock); round++)
        lock_wait(round);
}

/* Takes all locks of the ranks from `first` to `last`, in the order of ranks. */
static inline void static_locks_take(enum lock_rank first, enum lock_rank last)
{
    for (unsigned rank = first; rank <= (unsigned)last; rank++)
        for (struct static_lock **at = static_locks_begin; at < static_locks_end; at++)
            if ((*at)->rank == rank)
                static_lock_take(*at);
}

/* Releases all static locks, which the calling thread holds, or held before it was forked. */
static inline void static_locks_release(void)
{
    for (struct static_lock **at = static_locks_begin; at < static_locks_end; at++)
        if ((*at)->mutex)
            mutex_release((*at)->mutex);
        else
            lock_release((*at)->lock);
}
