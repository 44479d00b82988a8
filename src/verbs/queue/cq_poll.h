/* Taking entries out: ibv_poll_cq(3), and removing entries that no program shall see. */
#pragma once

#include "base/likely.h"
#include "process/process.h"
#include "verbs/queue/cq.h"

int cq_poll(struct ibv_cq *, int count, struct ibv_wc *);

/* Arms once: the next entry raises the event, or an entry that is already in the queue (cq_event.h). */
int cq_arm(struct ibv_cq *, int solicited_only);

/* Withdraws all entries of the queue pair of this number: no program will see them. Returns when no poller uses one of
 * them any more. */
void cq_withdraw(struct cq *, uint32_t number);

/* Keeps entries, but polling them no longer increments *retired. */
void cq_forget(struct cq *, const _Atomic uint32_t *retired);

/* Waits until the message of an entry that was taken out has been acknowledged, if its sender is on this host, before
 * the program gets the entry and may end at once. On adapters, too, the acknowledgement leaves first. The wait is the
 * end of another thread's round, some microseconds at most. */
void cq_wait_for_round(const struct cq *, uint32_t round);

static inline void cq_wait_for_responses(const struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->delivered, memory_order_relaxed);
    uint32_t responded = atomic_load_explicit(&cq->process->loop.responded, memory_order_acquire);
    if (unlikely((int32_t)(round - responded) > 0))
        cq_wait_for_round(cq, round);
}
