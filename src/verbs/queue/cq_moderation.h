/* Events of a completion queue held back: ibv_modify_cq(3).
 *
 * With a count and a period, both not 0, an armed CQ raises its event when `count` entries have come that would have
 * raised it, or `period` microseconds after the first of them, whichever is sooner. Entries themselves are never held
 * back, and an event that is held is raised by the helper's timer, so none is lost. With either of them 0 the event
 * comes with the first entry. Only a CQ that holds one back has a timer. */
#ifndef VERBS_QUEUE_CQ_MODERATION_H
#define VERBS_QUEUE_CQ_MODERATION_H

#include "verbs/queue/cq.h"

enum { CQ_MODERATION_MOST = UINT16_MAX }; /* of both, as ibv_query_device_ex tells in cq_mod_caps */

/* ENOENT, EINVAL for unknown bits of attr_mask. Thread-safe. */
int cq_moderation_modify(struct ibv_cq *, struct ibv_modify_cq_attr *);

/* An entry has come that raises the event. True: it is held back for now. Under cq->lock. */
bool cq_moderation_holds(struct cq *);

/* Nothing is held back any more. Under cq->lock. */
void cq_moderation_clear(struct cq *);

/* Before anybody else knows the queue. */
void cq_moderation_begin(struct cq *);

/* The timer of a queue that nothing uses any more is stopped. Under process->progress. */
void cq_moderation_forget(struct cq *);

#endif
