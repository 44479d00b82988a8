/* The requester's part that receives ACKs, NAKs, READ responses and atomic answers (IBA 9.7.6, 9.9.2). */
#pragma once

#include "transport/rc/rc.h"

void completer_receive(struct rc *, const struct packet *, nanos now);

/* Takes an ACK up to this PSN that was sent along with a request. */
void completer_receive_along(struct rc *, uint32_t psn, nanos now);

/* Does what PEER_TOOK_ALL says (engine/engine.h). False: the peer counts as silent, and nothing was done. */
bool completer_presume(struct rc *, nanos now);
