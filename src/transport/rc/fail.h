/* The ways into the error state. */
#ifndef TRANSPORT_RC_FAIL_H
#define TRANSPORT_RC_FAIL_H

#include "transport/rc/rc.h"

/* The oldest work ends with this error, everything else is flushed. */
void fail_requester(struct rc *, enum ibv_wc_status, enum reason);

/* A request broke a rule: the open receive, if any, ends with `status`, all work is flushed. */
void fail_responder(struct rc *, enum ibv_wc_status, enum reason, const struct packet *);

/* The open receive ends without its message. `packet` may be NULL. */
void fail_receive(struct rc *, enum ibv_wc_status, enum reason, const struct packet *);

#endif
