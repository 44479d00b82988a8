/* An XRC_RECV queue pair whose domain other processes have open, too: packets may name their SRQs.
 *
 * The peer talks to the queue pair's process only, and there to one responder. A request for an SRQ of another process
 * is executed there, by a substitute (xrc_substitute.h): an engine of the same connection, to which the position in the
 * sequence of packets is lent (transport/rc/lend.h). The queue pair then forwards each packet, in order, and the
 * substitute's responses to the peer, until a message names an SRQ that is not of that process; then it asks for the
 * position back. So everything is checked, executed, refused and acknowledged where the memory is, and an ACK means
 * that the message is in its process's memory.
 *
 * A repeated READ or atomic is sent to its executor, whether that has the position or not.
 *
 * When the process of a substitute dies, the queue pair continues after the last response that it has forwarded; the
 * requests that the peer then repeats name an SRQ that does not exist, and are refused for that. A packet that finds
 * no room on the way waits here, at most as many as the peer's window (XRC_WINDOW). All under qp->lock. */
#pragma once

#include "runtime/endpoint.h"
#include "wire/packet.h"

struct qp;

/* Takes a packet from the peer. Under process->progress. */
void xrc_front_receive(struct qp *, const struct packet *, nanos now);

/* Takes a packet from a substitute of this queue pair: a response for the peer, or a control message. False: it is
 * from another sender. Under process->progress. */
bool xrc_front_takes(struct qp *, const struct endpoint_arrival *);

/* Returns true if a packet waits for room or for the position. */
bool xrc_front_waits(const struct qp *);

/* Forwards waiting packets, and lets the engine transmit after the responses. Under process->progress. */
void xrc_front_flush(struct qp *, nanos now);

/* Takes the position back if the substitute's process was among those that left. Under process->progress. */
void xrc_front_departed(struct qp *, nanos now);
