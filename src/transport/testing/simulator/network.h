/* The network of a world: it loses, delays, reorders and doubles packets as the plan says, and reads payloads by
 * reference only when they land. */
#pragma once

#include "transport/testing/simulator/world.h"

/* Takes a packet that the endpoint's engine transmitted, and copies it, except a payload by reference. */
void network_send(struct endpoint *from, const struct packet *);

/* Lets the flight reach the endpoint, and frees it. */
void network_land(struct endpoint *to, struct flight *);

void network_free(struct flight *);
