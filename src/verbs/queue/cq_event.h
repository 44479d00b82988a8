/* Events of a completion queue, raised at once or held back: ibv_req_notify_cq(3), ibv_modify_cq(3).
 *
 * Arming is one-shot. It is for the next entry that the program has neither polled nor had an event for: an entry that
 * is already in the queue raises the event at once, a notable one if the arming is for these alone. So a program that
 * polls one entry for each event gets as many events as entries, whether it polls before it arms (Mellanox's
 * ibverbs-tests) or arms before it polls (perftest, which gets out of step when an entry raises a second event). A
 * program that polls until the queue is empty gets an event now and then whose entry it has polled, as one thread may
 * arm and another poll. At most one such event waits to be fetched. A CQ whose arming is `only_new` raises its event
 * for the next entry that is added, as the kernel's rxe and siw do.
 *
 * With a count and a period, both not 0, an armed CQ raises its event when `count` entries have arrived that would have
 * raised it, or `period` microseconds after the first of them, whichever is sooner. Entries themselves are never held
 * back, and the helper's timer raises an event that is held, so no event is lost. If one of them is 0, the first entry
 * raises the event. Only a CQ that holds an event back has a timer. */
#pragma once

#include "verbs/queue/cq.h"

enum { CQ_MODERATION_MOST = UINT16_MAX }; /* the largest count and period, which ibv_query_device_ex(3) returns */

/* Sets the moderation. 0, ENOENT, or EINVAL for unknown bits of attr_mask. Thread-safe. */
int cq_event_moderate(struct ibv_cq *, struct ibv_modify_cq_attr *);

/* Returns true if one of the entries is notable. Under `lock`. After entries were withdrawn, the newest remaining one
 * may count as notable. */
static inline bool cq_holds_notable(const struct cq *cq)
{
    return cq->notable_end - cq_ring_head(&cq->ring) - 1 < cq_ring_count(&cq->ring);
}

/* Raises the event for an entry that is in its place, if the CQ is armed for it, unless the event is held back.
 * `notable`: a solicited receive or an error. Under cq->lock. */
void cq_event_notify(struct cq *, bool notable);

/* Raises the event itself; the CQ must have a channel. Under cq->lock. */
void cq_event_raise(struct cq *);

/* ibv_req_notify_cq(3). Under cq->lock, like adding entries: an entry that is not seen here finds the CQ armed. */
void cq_event_arm(struct cq *, enum cq_armed);

/* The position of the oldest entry that was neither polled nor raised an event. Under `lock`. A poller may advance
 * meanwhile, so the answer may be too low, which raises an event too many, never too high. */
static inline uint32_t cq_unreported(const struct cq *cq)
{
    uint32_t head = cq_ring_head(&cq->ring);
    return (int32_t)(cq->unreported - head) > 0 ? cq->unreported : head;
}

/* Initializes the events, before other threads know the queue. */
void cq_event_begin(struct cq *);

/* Stops the timer of a queue that is not used any more. Under process->progress. */
void cq_event_forget(struct cq *);
