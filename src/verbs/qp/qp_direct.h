/* READs and WRITEs of a queue pair that its process does by itself in the peer's memory, and the publications to the
 * peer for that: docs/evidence/one-sided.md. Under qp->lock. */
#pragma once

#include "transport/direct.h"
#include "verbs/qp/qp.h"

/* Publishes the new state or attributes of the queue pair to its peer, if the peer may do anything by itself. */
void qp_publish(struct qp *);
/* Withdraws the publication, before state or attributes change or the queue pair ends: on return the peer does nothing
 * by itself any more. May wait for the peer, and gives the lock back meanwhile: check the state again. */
void qp_unpublish(struct qp *);
/* Withdraws the publication after a failure: the peer begins nothing any more. */
void qp_unpublish_failed(struct qp *);

/* Carries out the oldest work directly, as far as possible, when the next work is a READ or WRITE (rc_direct_next) and
 * no taps or rate have to see packets. Only for a link with `directs`; with other links settings.direct is false. True:
 * nothing else is to be sent. */
bool qp_transmit_directly(struct qp *, struct link *);

/* Carries out a READ into a receive, which is in no send queue, if the peer is known, work may be done directly and the
 * queue pair may begin work. False: the READ must be posted. */
bool qp_read_directly(struct qp *, const struct send_wqe *);

/* Carries out a READ or WRITE of SRD, to a receiver on this host from the device's GID with this index. False: it must
 * be sent as packets. */
bool qp_direct_message(struct qp *, unsigned gid_index, const struct direct_works *);

/* Returns true if a peer may have written to this process's memory since the queue pair was made, by packets to it or
 * by itself anywhere. Called under no lock of the queue pair; true also if a lock that it needs is not free now. */
bool qp_may_be_written_to(struct qp *);
