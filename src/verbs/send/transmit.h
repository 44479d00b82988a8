/* Sending the output of queue pairs' engines. All under qp->lock. */
#pragma once

#include "verbs/qp/qp.h"

struct packet;

/* Sends the engine's output as long as the link has room; the rest is sent when it has room again. */
void qp_transmit(struct qp *, nanos now);
/* Transmits for a caller between guard_begin and guard_end (link/guard.h). */
void qp_transmit_guarded(struct qp *, nanos now);

/* Sends an ACK to a peer on this host, and returns true, if that is the only possible output and the link has room.
 * Otherwise nothing has happened: call qp_transmit_guarded. Called between guard_begin and guard_end. */
bool qp_acknowledge(struct qp *);

/* Sends the peer a packet that is not the engine's; false: the link has no room now, and the queue pair waits for
 * room. */
bool qp_send_packet(struct qp *, const struct packet *);

/* Sends the answers that the queue pair owes its peer, as it ends. The program has the completions of messages whose
 * ACK still waits to be sent along with a request (process/progress.h). */
void qp_settle(struct qp *);

/* Returns true if the peer is gone, and had taken all that was sent. Asked only at the time-out: by then its refusal
 * has been read, if there was one. Under qp->lock. */
bool qp_was_taken(struct qp *);

/* Sends the output of a reliable queue pair, for its kind's qp_kind.transmit. */
void qp_transmit_reliable(struct qp *, nanos now);

/* Implementations of qp_kind.transmit: packets to the peer of an unreliable connection, and datagrams to their address
 * handles. */
void qp_transmit_connected(struct qp *, nanos now);
void qp_transmit_datagrams(struct qp *, nanos now);
