/* The two ends of a connection on this host: what was given to each is compared when the later of them comes to RTS. */
#pragma once

#include "ipc/ends.h"
#include "verbs/qp/qp.h"

/* Enters a queue pair that comes from RTR to RTS in the host's table of ends, and writes a line for what it and its
 * peer can't both have been given on purpose. Under qp->lock. */
void qp_ends_enter(struct qp *);

/* Removes it, as it leaves its connection. Under qp->lock. */
void qp_ends_leave(struct qp *);

/* Copies what this queue pair and its peer were given, if the table has the peer's end of this connection. Thread-safe.
 */
bool qp_ends_meet(struct ibv_qp *, struct end *own, struct end *peer);
