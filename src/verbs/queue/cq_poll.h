/* Taking entries out. */
#ifndef VERBS_QUEUE_CQ_POLL_H
#define VERBS_QUEUE_CQ_POLL_H

#include "verbs/queue/cq.h"

static inline void cq_wait_for_responses(const struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->delivered, memory_order_relaxed);
    uint32_t answered = atomic_load_explicit(&cq->process->loop.answered, memory_order_acquire);
    if (__builtin_expect((int32_t)(round - answered) > 0, 0))
        cq_wait_for_round(cq, round);
}

#endif
