/* Sending what the engines of queue pairs have. All under qp->lock. */
#ifndef VERBS_SEND_TRANSMIT_H
#define VERBS_SEND_TRANSMIT_H

#include "verbs/qp/qp.h"

struct packet;

/* Sends what the engine has, as long as the link has room; the rest goes on when there is some. */
void qp_transmit(struct qp *, nanos now);
/* The same for a caller between guard_begin and guard_end (link/guard.h). */
void qp_transmit_guarded(struct qp *, nanos now);

/* When all that it may have to send is an ACK to a peer on this host, which has room, sends that and
 * returns true. Otherwise nothing has happened, and qp_transmit_guarded is to be called. Likewise guarded. */
bool qp_acknowledge(struct qp *);

/* Sends this packet, which is not of its engine, by the way to its peer; false: there is no room now, and the queue
 * pair waits for some. */
bool qp_send_packet(struct qp *, const struct packet *);

/* The queue pair ends: the answers that it owes its peer leave now. The program has the completions of messages whose
 * ACK still waits to go along with a request (process/progress.h). */
void qp_settle(struct qp *);

/* Returns true if the peer is gone, and had taken all that was sent. Asked only at the time-out: by then its refusal
 * has been read, if there was one. Under qp->lock. */
bool qp_was_taken(struct qp *);

/* The same of a kind (qp_kind.transmit): packets to the peer of an unreliable connection, and datagrams to where the
 * address handles lead. */
void qp_transmit_connected(struct qp *, nanos now);
void qp_transmit_datagrams(struct qp *, nanos now);

#endif
