/* The calls that threads are in, with the objects that each is about. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/likely.h"

/* The states that a thread begins with one call and ends with another. */
enum callers_open { CALLERS_BATCH /* ibv_wr_start */, CALLERS_POLL /* ibv_start_poll */, CALLERS_OPEN };

/* The record of a thread. It is never freed, but reused after the thread's end. Other threads read it at any time. */
struct caller {
    SLIST_ENTRY(caller) siblings;
    uintptr_t thread; /* 0: free */
    _Atomic(const char *) call;
    _Atomic(const void *) object, beside;
    _Atomic(const void *) open[CALLERS_OPEN];
};

extern _Thread_local struct caller *caller_own __attribute__((tls_model("initial-exec")));

/* Watches for ends of threads and for forks from now on. Call it before the program runs. */
void callers_begin(void);

/* Gives the calling thread a record; NULL: no memory. Takes the shadow's lock. */
struct caller *callers_join(void);

/* Notes a call that names these objects (or NULL), until callers_leave. Calls do not nest. */
static inline void callers_enter(const char *call, const void *object, const void *beside)
{
    struct caller *own = likely(caller_own != NULL) ? caller_own : callers_join();
    if (!own)
        return;
    atomic_store_explicit(&own->call, call, memory_order_relaxed);
    atomic_store_explicit(&own->object, object, memory_order_relaxed);
    atomic_store_explicit(&own->beside, beside, memory_order_relaxed);
}

static inline void callers_leave(void)
{
    if (unlikely(!caller_own))
        return;
    atomic_store_explicit(&caller_own->object, NULL, memory_order_relaxed);
    atomic_store_explicit(&caller_own->beside, NULL, memory_order_relaxed);
}

/* Notes that this thread has begun the state on the object; NULL: that it has ended the state. */
void callers_open(enum callers_open, const void *object);

/* Returns a call of another thread that names this object now, or NULL. Under the shadow's lock. */
const char *callers_other(const void *object);
