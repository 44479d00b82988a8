/* The network of a world: it loses, delays, reorders and doubles packets as the plan says, and reads their payload by
 * reference only when they land. */
#ifndef TRANSPORT_TESTING_SIMULATOR_NETWORK_H
#define TRANSPORT_TESTING_SIMULATOR_NETWORK_H

#include "transport/testing/simulator/world.h"

/* Takes what the endpoint's engine transmitted. All except a payload by reference is copied. */
void network_send(struct endpoint *from, const struct packet *);

/* The flight reaches the endpoint, and is over. */
void network_land(struct endpoint *to, struct flight *);

void network_free(struct flight *);

#endif
