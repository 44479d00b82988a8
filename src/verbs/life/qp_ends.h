/* The two ends of a connection on this host: what was given to each is compared when the later of them is in RTS. */
#pragma once

#include "ipc/ends.h"
#include "verbs/qp/qp.h"

/* Enters a queue pair that changes from RTR to RTS into the host's table of ends, and logs what it and its peer can't
 * both have been given on purpose. Under qp->lock. */
void qp_ends_enter(struct qp *);

/* Removes the queue pair, as it leaves its connection. Under qp->lock. */
void qp_ends_leave(struct qp *);

/* Copies what this queue pair and its peer were given. False: no end of the peer is in the table. Thread-safe. */
bool qp_ends_meet(struct ibv_qp *, struct end *own, struct end *peer);
