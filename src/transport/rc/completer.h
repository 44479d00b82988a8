/* The requester receives ACK, NAK, READ responses and atomic answers (IBA 9.7.6, 9.9.2). */
#pragma once

#include "transport/rc/rc.h"

void completer_receive(struct rc *, const struct packet *, nanos now);

/* Takes an ACK up to this PSN that was sent along with a request. */
void completer_receive_along(struct rc *, uint32_t psn, nanos now);

/* Handles PEER_TOOK_ALL (engine/engine.h): the peer is gone, and had taken all that was sent. False: it did nothing. */
bool completer_presume(struct rc *, nanos now);
