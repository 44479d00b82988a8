/* The entries of a completion queue, for the two files that take them out: cq_poll.c and cq_ex.c. */
#pragma once

#include "base/likely.h"
#include "link/fence.h"
#include "verbs/queue/cq.h"

void cq_consumer_wait(struct cq *); /* takes the consumer lock */

static inline void cq_consumer_lock(struct cq *cq)
{
    if (!(cq->create_flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) && !lock_try(&cq->consumer))
        cq_consumer_wait(cq);
}

static inline void cq_consumer_unlock(struct cq *cq)
{
    if (!(cq->create_flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
        lock_release(&cq->consumer);
}

/* clang-format off */
/* A thread that takes entries out keeps away threads that put entries in and drop the oldest for that (IGNORE_OVERRUN),
 * or change the entries (cq_stop): with cq->lock if that is needed often (`slow.takes`), else by cq->taking. The batch of
 * a program may last long, a look at the entries never does: it does not wait.
 *
 *     taker:    taking = true;   fence;                 looks at `stopped`
 *     cq_stop:  stopped = true;  fence of all threads;  looks at `taking` until it is false */
/* clang-format on */
bool cq_wait_to_take(struct cq *); /* waits while `stopped` is set: takes cq->lock and returns true */

static inline bool cq_begin_taking_freely(struct cq *cq)
{
    atomic_store_explicit(&cq->taking, true, memory_order_relaxed);
    fence_compiler();
    return likely(!atomic_load_explicit(&cq->stopped, memory_order_acquire));
}

static inline void cq_end_taking_freely(struct cq *cq)
{
    atomic_store_explicit(&cq->taking, false, memory_order_release);
}

/* Returns whether it has taken cq->lock, for cq_end_taking. */
static inline bool cq_begin_taking(struct cq *cq)
{
    return unlikely(cq->slow.takes || !cq_begin_taking_freely(cq)) && cq_wait_to_take(cq);
}

static inline void cq_end_taking(struct cq *cq, bool locked)
{
    if (unlikely(locked))
        lock_release(&cq->lock);
    else
        cq_end_taking_freely(cq);
}

/* cq_stop keeps all threads from adding entries or looking at them until cq_resume, though a program may be in the
 * middle of a batch: it never waits for a program. cq->lock is held meanwhile. Not called for queues that the child of
 * a fork inherited: their takers are gone. */
void cq_stop(struct cq *);
void cq_resume(struct cq *);
