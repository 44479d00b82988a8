/* Putting an entry in. */
#pragma once

#include "base/likely.h"
#include "process/process.h"
#include "verbs/queue/cq.h"

/* Puts an entry in; raises the event if the CQ is armed for it. `notable`: a solicited receive or an error.
 * A full CQ overruns: false, the entry is lost, and process->loop.overrun asks the progress to fail the attached queue
 * pairs. */
bool cq_push(struct cq *, const struct completion *, bool notable);

/* Notes, before a receive is put in, the round of the loop that brings it: its message may not be acknowledged yet. */
static inline void cq_note_round(struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->process->loop.delivering, memory_order_relaxed);
    atomic_store_explicit(&cq->delivered, round, memory_order_relaxed);
}

/* Decides whether entries are put in the long way, as they are stamped or disturbed, after a change of these. Under
 * cq->lock, or before other threads know the queue. */
void cq_judge_push(struct cq *);

/* Makes room in a full queue; NULL: the entry is lost, and cq->lock is given back. Under cq->lock. */
struct completion *cq_make_room(struct cq *);
/* IBA 11.6.3.1: an overrun is a CQ error; the queue pairs that lose completions are failed by the progress, which can
 * take their locks. Under cq->lock. */
void cq_overrun(struct cq *);
/* Lets the entry in its place be polled, and raise the event. Under cq->lock. */
void cq_put(struct cq *, struct completion *, bool notable);
/* Puts in an entry that was held back, and has no place yet; without room the CQ overruns. Under cq->lock, which may be
 * given back meanwhile. */
void cq_put_late(struct cq *, const struct completion *, bool notable);
void cq_end_push_slow(struct cq *, struct completion *, bool notable);

/* Begins to put in an entry, which the caller fills in its place, completely: NULL when it is lost, else cq_end_push
 * must follow at once. Holds cq->lock until then. */
static inline struct completion *cq_begin_push(struct cq *cq)
{
    lock_take(&cq->lock);
    struct completion *to = cq_ring_room(&cq->ring);
    return likely(to != NULL) ? to : cq_make_room(cq);
}

static inline void cq_end_push(struct cq *cq, struct completion *entry, bool notable)
{
    lock_assert_held(&cq->lock);
    bool usual = !cq->slow.puts && cq->armed == CQ_UNARMED && !notable;
    if (likely(usual))
        cq_ring_put(&cq->ring);
    else
        cq_end_push_slow(cq, entry, notable);
    lock_release(&cq->lock);
}
