/* Completion queues: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_resize_cq(3).
 * Thread-safe, but for a CQ made SINGLE_THREADED, whose polling the program serialises. */
#ifndef VERBS_QUEUE_CQ_H
#define VERBS_QUEUE_CQ_H

#include "verbs/object/object.h"

struct ibv_cq_ex *cq_create(struct ibv_context *, const struct ibv_cq_init_attr_ex *); /* NULL and errno */
int cq_destroy(struct ibv_cq *);             /* EBUSY; waits until all events are acknowledged */
int cq_resize(struct ibv_cq *, int entries); /* keeps what is queued; EINVAL below that */
int cq_poll(struct ibv_cq *, int count, struct ibv_wc *);
int cq_arm(struct ibv_cq *, int solicited_only);

/* Puts an entry in; raises the event if the CQ is armed for it. `notable`: a solicited receive or an error.
 * A full CQ overruns: false, the entry is lost, and process->loop.overrun asks the progress to fail the attached queue
 * pairs. */
bool cq_push(struct cq *, const struct completion *, bool notable);

/* Before a receive is put in: the round that brings it may not have answered yet. */
static inline void cq_note_round(struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->process->loop.delivering, memory_order_relaxed);
    atomic_store_explicit(&cq->delivered, round, memory_order_relaxed);
}

/* After an entry was taken out and before the program has it: what it tells of has been acknowledged, as far as that
 * goes to this host, so that the program may end at once. On adapters, too, the acknowledgement leaves first. Waits for
 * the end of another thread's round, some microseconds at most. */
void cq_wait_for_round(const struct cq *, uint32_t round);

static inline void cq_wait_for_responses(const struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->delivered, memory_order_relaxed);
    uint32_t answered = atomic_load_explicit(&cq->process->loop.answered, memory_order_acquire);
    if (__builtin_expect((int32_t)(round - answered) > 0, 0))
        cq_wait_for_round(cq, round);
}

/* The event that the CQ is armed for, now. Under cq->lock. */
void cq_raise(struct cq *);

/* From cq_stop to cq_resume nobody adds entries or looks at them, though a program may be in the middle of a batch of
 * them: waits for no program. cq->lock is held meanwhile. Not within process->forked copies, whose takers are gone. */
void cq_stop(struct cq *);
void cq_resume(struct cq *);

/* Withdraws all entries of a queue pair: nobody will see them. Returns when no poller uses one of them any more. */
void cq_withdraw(struct cq *, const struct qp *);

/* Entries stay, but polling them no longer counts here. */
void cq_forget(struct cq *, const _Atomic uint32_t *retired);

static inline bool cq_is_empty(const struct cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
           atomic_load_explicit(&cq->tail, memory_order_acquire);
}

/* Fills the iterator's functions of a new CQ. */
void cq_extend(struct cq *);

enum {
    CQ_WC_FLAGS = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
                  IBV_WC_EX_WITH_TM_INFO
};

#endif
