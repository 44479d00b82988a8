/* An XRC_RECV queue pair whose domain other processes have open, too: packets may name SRQs of theirs.
 *
 * The peer talks to the queue pair's process only, and there to one responder. A request for an SRQ of another process
 * is executed there, by a stand-in (xrc_standin.h): an engine of the same connection, to which the position in the
 * sequence of packets is lent (transport/rc/lend.h). From then on the queue pair passes on each packet, in order, and
 * passes the stand-in's responses on to the peer, until a message names an SRQ that is not of that process; then it
 * asks for the position back. So everything is checked, executed, refused and acknowledged where the memory is, and an
 * ACK says that the message is in its process's memory.
 *
 * A READ or atomic that is asked for again goes to its executor, whether that has the position or not.
 *
 * When the process of a stand-in dies, the queue pair goes on behind the last response that it has passed on; the
 * requests that the peer then repeats name an SRQ that does not exist, and are refused as such. A packet that finds no
 * room on the way waits here, at most as much as the peer's window (XRC_WINDOW). All under qp->lock. */
#ifndef VERBS_KINDS_XRC_XRC_FRONT_H
#define VERBS_KINDS_XRC_XRC_FRONT_H

#include "runtime/endpoint.h"
#include "wire/packet.h"

struct qp;

/* A packet from the peer. Under process->progress. */
void xrc_front_receive(struct qp *, const struct packet *, nanos now);

/* Returns true if it is from a stand-in of this queue pair: a response for the peer, or a control message. It has been
 * dealt with then. Likewise. */
bool xrc_front_takes(struct qp *, const struct endpoint_arrival *);

/* Returns true if a packet waits for room or for the position. */
bool xrc_front_waits(const struct qp *);

/* It goes on if it can, and so does the queue pair's engine, behind the responses. Under process->progress. */
void xrc_front_flush(struct qp *, nanos now);

/* Some process has gone: if it was the stand-in's, the position is taken back. Likewise. */
void xrc_front_departed(struct qp *, nanos now);

#endif
