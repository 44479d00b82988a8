/* The responder of a reliable connection: takes requests (IBA 9.7.4). */
#ifndef TRANSPORT_RC_RESPONDER_H
#define TRANSPORT_RC_RESPONDER_H

#include "transport/rc/rc.h"

void responder_receive(struct rc *, const struct packet *);

#endif
