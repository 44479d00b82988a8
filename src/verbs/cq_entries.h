/* The entries of a completion queue, for the two ways in which they are taken out: cq.c and cq_ex.c. */
#ifndef VERBS_CQ_ENTRIES_H
#define VERBS_CQ_ENTRIES_H

#include "verbs/object.h"

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

static inline struct completion *cq_entry_at(struct cq *cq, uint32_t position)
{
    return &cq->ring[position & (cq->capacity - 1)];
}

/* The program has seen that this work ended: its places in the send queue are free, and those of the unsignalled work
 * before it. One writer at a time, since all of a queue pair's send completions go to one CQ. */
static inline void cq_retire(const struct completion *entry)
{
    uint32_t retired = atomic_load_explicit(entry->retired, memory_order_relaxed);
    atomic_store_explicit(entry->retired, retired + entry->retires, memory_order_release);
}

/* A CQ that ignores overruns drops the oldest entries when it is full, so those that take them must keep those out that
 * put some in. */
static inline void cq_lock_entries(struct cq *cq)
{
    if (__builtin_expect(cq->create_flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 0))
        lock_take(&cq->lock);
}

static inline void cq_unlock_entries(struct cq *cq)
{
    if (__builtin_expect(cq->create_flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 0))
        lock_release(&cq->lock);
}

#endif
