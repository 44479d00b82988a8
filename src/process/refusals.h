/* Answers to packets for queue pairs that do not exist: EFA's host answers instead (wire/srd.h). */
#pragma once

#include "ipc/node.h"
#include "wire/packet.h"

struct process;

/* Answers a packet of this peer if its service has such an answer, and the link has room. Under progress. */
void refusals_send(struct peer *, const struct packet *);

/* Answers a packet of the network, which came over this interface: no longer than it, and not too often, as its
 * sender's address may be forged. Under progress. */
void refusals_send_back(struct process *, const struct packet *, unsigned interface, nanos now);
