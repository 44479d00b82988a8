/* READs and WRITEs of a queue pair that its process does by itself in the peer's, and the publications to the peer for
 * that: docs/evidence/one-sided.md. Under qp->lock. */
#ifndef VERBS_QP_QP_DIRECT_H
#define VERBS_QP_QP_DIRECT_H

#include "verbs/qp/qp.h"

struct link;

/* The queue pair has got another state or other attributes: publishes them to its peer, if that may do anything by
 * itself. */
void qp_publish(struct qp *);
/* It is to get some, or goes: when this returns, the peer does nothing by itself any more. May wait for the peer, and
 * gives the lock back meanwhile: look again what state it is in. */
void qp_unpublish(struct qp *);
/* It has failed: the peer begins nothing any more. */
void qp_unpublish_failed(struct qp *);

/* When the next work is a READ or WRITE (rc_direct_next): does what of the oldest may be done so, where there are no
 * taps and no rate that have to see packets. For a link with `directs`; others' settings.direct is false. True: there
 * is nothing else to send. */
bool qp_transmit_directly(struct qp *, struct link *);

/* A READ into a receive that is in no send queue: does it, where the peer is known, its work may be done so and nothing
 * keeps the queue pair from beginning work. False: it is to be posted. */
bool qp_read_directly(struct qp *, const struct send_wqe *);

/* Returns true if a peer may have written in this process's memory since the queue pair was made, by packets to it or
 * by itself anywhere. Under no lock of the queue pair's, and it waits for none: true also where one is not free now. */
bool qp_may_be_written_to(struct qp *);

#endif
