/* The effect of a script (docs/reference/scripts.md) on the completions of a CQ and on its events: completions are held
 * back, with all later ones, events are lost, late or doubled. An adverse process does the same (adverse/adverse.h). A
 * CQ without rules has no such state. */
#ifndef VERBS_QUEUE_CQ_HELD_H
#define VERBS_QUEUE_CQ_HELD_H

#include "verbs/queue/cq.h"

#define CQ_WATCHED (1ull << 63) /* in cq->wc_flags: cq_end_push_slow puts entries in */

/* Called at the time of a held completion or event. Under cq->lock. */
struct cq_held_operations {
    void (*put)(struct cq *, const struct completion *, bool notable);
    void (*raise)(struct cq *);
    void (*overrun)(struct cq *);
};

/* Asks rules from now on, if any are for this. Does nothing without memory. Under cq->lock, or before other threads
 * know the queue. */
void cq_held_begin(struct cq *, struct schedule *, const struct cq_held_operations *);

/* Called before the memory of the CQ is freed. */
void cq_held_end(struct cq *);

/* Stops the timer of a queue that is not used any more. Under process->progress. */
void cq_held_forget(struct cq *);

/* Sets, in an adverse process, the fields of an entry that are undefined. Under cq->lock, like all below. */
void cq_held_spoil(struct cq *, struct completion *);

/* Asks for an entry: true: it is kept, and is put into the ring later, or it found no room. */
bool cq_held_takes(struct cq *, const struct completion *, bool notable);

/* Asks for an event: false: it is lost, or is raised later. */
bool cq_held_lets(struct cq *);

/* cq_ring_withdraw and cq_ring_forget for entries that are held back. */
void cq_held_withdraw(struct cq *, uint32_t qp_number);
void cq_held_forget_retired(struct cq *, const _Atomic uint32_t *retired);

#endif
