/* The ways to the error state. */
#pragma once

#include "transport/rc/rc.h"

/* Ends the oldest work with this error, and flushes everything else, or the rest of its stream alone. */
void fail_requester(struct rc *, enum ibv_wc_status, enum reason);

/* Fails because a request broke a rule: the open receive, if any, ends with this status, and all work is flushed. */
void fail_responder(struct rc *, enum ibv_wc_status, enum reason, const struct packet *);

/* Ends the open receive, if any, with this status. `packet` may be NULL. */
void fail_receive(struct rc *, enum ibv_wc_status, enum reason, const struct packet *);
