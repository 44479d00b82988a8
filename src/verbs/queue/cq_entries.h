/* The entries of a completion queue, for the two ways in which they are taken out: cq_poll.c and cq_ex.c. */
#ifndef VERBS_QUEUE_CQ_ENTRIES_H
#define VERBS_QUEUE_CQ_ENTRIES_H

#include "base/likely.h"
#include "link/fence.h"
#include "verbs/queue/cq.h"

void cq_consumer_wait(struct cq *); /* until the consumer lock is ours */

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
/* A thread that takes entries out keeps those out that put some in and drop the oldest for it (IGNORE_OVERRUN), or that
 * change what lies there (cq_stop): with cq->lock where that is needed often (`guarded`), else by saying so in
 * cq->taking. The batch of a program may last, a look at the entries never does: nothing in between waits.
 *
 *     taker:    taking = true;   fence;                 looks at `stopped`
 *     cq_stop:  stopped = true;  fence of all threads;  looks at `taking` until it is false
 */
/* clang-format on */
bool cq_wait_to_take(struct cq *); /* `stopped`: now under cq->lock; answers true */

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

/* Returns whether it is under cq->lock, which cq_end_taking needs. */
static inline bool cq_begin_taking(struct cq *cq)
{
    return unlikely(cq->guarded || !cq_begin_taking_freely(cq)) && cq_wait_to_take(cq);
}

static inline void cq_end_taking(struct cq *cq, bool locked)
{
    if (unlikely(locked))
        lock_release(&cq->lock);
    else
        cq_end_taking_freely(cq);
}

/* From cq_stop to cq_resume no thread adds entries or looks at them, though a program may be in the middle of a batch
 * of them: waits for no program. cq->lock is held meanwhile. Not within process->forked copies, whose takers are
 * gone. */
void cq_stop(struct cq *);
void cq_resume(struct cq *);

#endif
