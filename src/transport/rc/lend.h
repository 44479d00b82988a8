/* A responder that moves from engine to engine: requests of an XRC connection for an SRQ of another process are
 * executed there, by an engine of the same connection, which is lent the position in the sequence of packets
 * meanwhile and gives it back. One engine has the position at any time; the others may only get earlier requests,
 * which they have responded to before: each engine keeps the results of what it executed. */
#pragma once

#include "transport/position.h"
#include "transport/rc/rc.h"

/* Returns true if the position may be lent to another engine now. False inside a message, while an answer is owed or
 * after a failure. */
bool rc_may_lend(const struct rc *);

/* Lends the position. The connection counts as established (COMM_EST). */
struct engine_position rc_lend(struct rc *);

/* Continues from that position. */
void rc_take_over(struct rc *, const struct engine_position *);

/* The lender remembers what the peer knows from this answer of the engine that has the position. */
void rc_responded(struct rc *, const struct packet *response);

/* Takes the position back from an engine that is gone with all that it knew: this engine continues after its last
 * answer, and asks the peer to repeat the rest. The rest of a message that it had begun is then refused. */
void rc_reclaim(struct rc *);
