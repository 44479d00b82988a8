/* The answers that an SRD requester gets. Pure. */
#pragma once

#include "transport/srd/srd.h"

/* Takes a packet with OP_RESPONSE. */
void srd_responses_receive(struct srd *, const struct packet *, nanos now);
