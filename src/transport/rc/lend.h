/* A responder that goes from engine to engine: of an XRC connection's requests those for an SRQ of another process are
 * executed there, by an engine of the same connection, which is lent the position in the sequence of packets meanwhile
 * and gives it back. One of them has it at any time, and the others may only be given requests that they have responded
 * to before, which lie behind: the results that an engine keeps for those stay with it. */
#ifndef TRANSPORT_RC_LEND_H
#define TRANSPORT_RC_LEND_H

#include "transport/position.h"
#include "transport/rc/rc.h"

/* Returns true if the position may go to another engine now. False inside a message, while an answer is owed or after a
 * failure. */
bool rc_may_lend(const struct rc *);

/* Where the engine stands. The connection counts as established (COMM_EST). */
struct engine_position rc_lend(struct rc *);

/* This engine goes on from there. */
void rc_take_over(struct rc *, const struct engine_position *);

/* The engine that has the position has answered with this packet: the lender remembers what the peer knows. */
void rc_responded(struct rc *, const struct packet *answer);

/* The engine that has the position is gone with all that it knew: this one goes on behind its last answer, and the peer
 * is asked to repeat the rest. Of a message that it had begun the rest is then refused. */
void rc_reclaim(struct rc *);

#endif
