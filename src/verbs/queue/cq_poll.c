#include "verbs/queue/cq_poll.h"

#include "base/likely.h"
#include "process/poller.h"
#include "verbs/object/disturbance.h"
#include "verbs/queue/cq_entries.h"
#include "verbs/queue/cq_event.h"

static inline void to_wc(const struct completion *entry, struct ibv_wc *wc)
{
    wc->wr_id = entry->id;
    wc->status = entry->status;
    wc->opcode = entry->opcode;
    wc->vendor_err = entry->reason;
    wc->byte_len = entry->length;
    wc->invalidated_rkey = entry->immediate_or_key;
    wc->qp_num = entry->qp_number;
    wc->src_qp = entry->source;
    wc->wc_flags = entry->flags;
    wc->pkey_index = entry->pkey_index;
    wc->slid = entry->slid;
    wc->sl = entry->sl;
    wc->dlid_path_bits = entry->path_bits;
}

static int take_many(struct cq *cq, int count, struct ibv_wc *wc)
{
    int taken = 0;
    bool locked = cq_begin_taking(cq);
    uint32_t head = cq_ring_head(&cq->ring), tail = cq_ring_tail(&cq->ring);
    for (; head != tail && taken < count; head++) {
        struct completion *entry = cq_ring_at(&cq->ring, head);
        to_wc(entry, &wc[taken++]);
        cq_retire(entry);
    }
    cq_ring_taken(&cq->ring, head);
    cq_end_taking(cq, locked);
    return taken;
}

/* Does not wait for ever: a signal handler may have interrupted this thread in its own round. */
void cq_wait_for_round(const struct cq *cq, uint32_t round)
{
    enum { STEPS_MOST = 2000 };
    for (unsigned step = 0; step < STEPS_MOST; step++) {
        if ((int32_t)(round - atomic_load_explicit(&cq->process->loop.responded, memory_order_acquire)) <= 0)
            return;
        lock_wait(step);
    }
}

/* Kept apart, so that a poll that finds nothing saves few registers. A thread between start_poll and end_poll holds the
 * consumer lock already. */
cold static int take_entries(struct cq *cq, int count, struct ibv_wc *wc)
{
    bool nested = atomic_load_explicit(&cq->batch_owner, memory_order_relaxed) == (uintptr_t)pthread_self();
    if (!nested)
        cq_consumer_lock(cq);
    int taken = take_many(cq, count, wc);
    if (!nested)
        cq_consumer_unlock(cq);
    cq_wait_for_responses(cq);
    return taken;
}

int cq_poll(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    struct cq *cq = (struct cq *)ibv;
    if (cq_ring_is_empty(&cq->ring))
        poller_poll(cq->process);
    return cq_ring_is_empty(&cq->ring) ? 0 : take_entries(cq, count, wc);
}

/* A thread in a batch keeps its current entry, as it has a copy of it. */
void cq_withdraw(struct cq *cq, uint32_t number)
{
    cq_stop(cq);
    bool notable = cq_holds_notable(cq);
    cq_ring_withdraw(&cq->ring, number);
    if (cq->moderation.disturbance)
        cq->moderation.disturbance->withdraws(cq, number);
    if (notable)
        cq->notable_end = cq_ring_tail(&cq->ring);
    cq->unreported = cq_ring_head(&cq->ring); /* an event too many may be raised, never too few */
    cq_resume(cq);
}

void cq_forget(struct cq *cq, const _Atomic uint32_t *retired)
{
    cq_stop(cq);
    cq_ring_forget(&cq->ring, retired);
    if (cq->moderation.disturbance)
        cq->moderation.disturbance->forgets(cq, retired);
    cq_resume(cq);
}

int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
    struct cq *cq = (struct cq *)ibv;
    enum cq_armed wanted = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED;
    lock_take(&cq->lock);
    cq_event_arm(cq, wanted);
    lock_release(&cq->lock);
    poller_handover(cq->process);
    return 0;
}
