/* A responder that moves from engine to engine: requests of an XRC connection for an SRQ of another process are
 * executed there, by an engine of the same connection, to which the position in the sequence of packets is lent
 * meanwhile. One engine has the position at any time; the others may only get earlier requests, which they have
 * responded to before: each engine keeps the results of what it executed. */
#pragma once

#include "transport/position.h"
#include "transport/rc/rc.h"

/* As the engine_ functions of the same names (engine/engine.h); rc_responded as engine_hear_response. */
bool rc_may_lend(const struct rc *);
struct engine_position rc_lend(struct rc *);
void rc_take_over(struct rc *, const struct engine_position *);
void rc_responded(struct rc *, const struct packet *response);
void rc_reclaim(struct rc *);
