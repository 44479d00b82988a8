/* The requester receiving ACK, NAK, READ responses and atomic answers (IBA 9.7.6, 9.9.2). */
#ifndef TRANSPORT_RC_COMPLETER_H
#define TRANSPORT_RC_COMPLETER_H

#include "transport/rc/rc.h"

void completer_receive(struct rc *, const struct packet *, nanos now);

/* An ACK up to this PSN that came along with a request. */
void completer_receive_along(struct rc *, uint32_t psn, nanos now);

/* All that was sent was taken, and the peer is gone: PEER_TOOK_ALL (engine/engine.h). False: nothing was done. */
bool completer_presume(struct rc *, nanos now);

#endif
