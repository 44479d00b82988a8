/* Putting an entry in. */
#ifndef VERBS_QUEUE_CQ_PUSH_H
#define VERBS_QUEUE_CQ_PUSH_H

#include "verbs/queue/cq.h"

static inline struct completion *cq_begin_push(struct cq *cq)
{
    lock_take(&cq->lock);
    struct completion *to = cq_ring_room(&cq->ring);
    return __builtin_expect(to != NULL, 1) ? to : cq_make_room(cq);
}

static inline void cq_end_push(struct cq *cq, struct completion *entry, bool notable)
{
    lock_assert_held(&cq->lock);
    bool usual = cq->wc_flags < IBV_WC_EX_WITH_COMPLETION_TIMESTAMP && cq->armed == CQ_UNARMED && !notable;
    if (__builtin_expect(usual, 1))
        cq_ring_put(&cq->ring);
    else
        cq_finish_unusual(cq, entry, notable);
    lock_release(&cq->lock);
}

#endif
