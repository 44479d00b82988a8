/* Taking entries out: ibv_poll_cq(3), and removing those that no program shall see. */
#ifndef VERBS_QUEUE_CQ_POLL_H
#define VERBS_QUEUE_CQ_POLL_H

#include "base/likely.h"
#include "process/process.h"
#include "verbs/queue/cq.h"

int cq_poll(struct ibv_cq *, int count, struct ibv_wc *);

/* Arms, once: the next entry raises the event, or one that lies there already (cq_event.h). */
int cq_arm(struct ibv_cq *, int solicited_only);

/* Withdraws all entries of the queue pair of this number: no program will see them. Returns when no poller uses one of
 * them any more. */
void cq_withdraw(struct cq *, uint32_t number);

/* Entries stay, but polling them no longer counts here. */
void cq_forget(struct cq *, const _Atomic uint32_t *retired);

/* After an entry was taken out and before the program has it: its message has been acknowledged, if that goes to this
 * host, so that the program may end at once. On adapters, too, the acknowledgement leaves first. Waits for the end of
 * another thread's round, some microseconds at most. */
void cq_wait_for_round(const struct cq *, uint32_t round);

static inline void cq_wait_for_responses(const struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->delivered, memory_order_relaxed);
    uint32_t answered = atomic_load_explicit(&cq->process->loop.answered, memory_order_acquire);
    if (unlikely((int32_t)(round - answered) > 0))
        cq_wait_for_round(cq, round);
}

#endif
