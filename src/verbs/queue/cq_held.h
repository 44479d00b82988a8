/* The effect of a script (docs/reference/scripts.md) on the completions of a CQ and on its events: completions are held
 * back, with all behind them, events are lost, late, or come twice. Likewise in an adverse process (adverse/adverse.h).
 * A CQ that no rule is for has nothing of this. */
#ifndef VERBS_QUEUE_CQ_HELD_H
#define VERBS_QUEUE_CQ_HELD_H

#include "verbs/queue/cq.h"

#define CQ_WATCHED (1ull << 63) /* in cq->wc_flags: entries are put in by cq_end_push_slow */

/* Called when the time of a held completion or event comes. Under cq->lock. */
struct cq_held_operations {
    void (*put)(struct cq *, const struct completion *, bool notable);
    void (*raise)(struct cq *);
    void (*overrun)(struct cq *);
};

/* From here on rules are asked, if there are any for this. Nothing when there is no memory. Under cq->lock, or before
 * anybody else knows the queue. */
void cq_held_begin(struct cq *, struct schedule *, const struct cq_held_operations *);

/* Before the memory of the CQ is freed. */
void cq_held_end(struct cq *);

/* The timer of a queue that nothing uses any more is stopped. Under process->progress. */
void cq_held_forget(struct cq *);

/* Its fields that no rule gives a value get one, in an adverse process. Under cq->lock, like all below.
 */
void cq_held_spoil(struct cq *, struct completion *);

/* An entry has come: true: it is kept, and comes into the ring later, or found no room. */
bool cq_held_takes(struct cq *, const struct completion *, bool notable);

/* An event is to be raised: false: it is lost, or comes later. */
bool cq_held_lets(struct cq *);

/* As cq_ring_withdraw and cq_ring_forget, for what is held back. */
void cq_held_withdraw(struct cq *, uint32_t qp_number);
void cq_held_forget_retired(struct cq *, const _Atomic uint32_t *retired);

#endif
