/* The way to an address of another host, as this host's kernel knows it: its route, and the neighbour that gets the
 * packets first. A kernel asks for both before it connects a queue pair of RoCE or resolves an address. Needs no
 * privilege; any thread, in the network namespace of the device's interface. */
#pragma once

#include <stdint.h>

#include "base/nanos.h"

struct reach {
    uint8_t hop_limit;    /* of the route; 0: not known */
    uint8_t neighbor[16]; /* as a GID: the destination, or the router on the way to it; zero: no neighbour is needed */
};

/* Asks for the way from the interface of this index, from the address `source` to `destination` (GIDs).
 *
 * 0: the neighbour is known, or not needed, or this kernel does not report it. EAGAIN: it is not known yet; the
 * kernel has been made to ask for it, by an empty datagram to UDP port 9 that no router passes on, so ask again soon.
 * ENETUNREACH, EHOSTUNREACH, EACCES: the route says so. */
int reach_ask(unsigned interface, const uint8_t source[16], const uint8_t destination[16], struct reach *);

/* Asks until the neighbour is known, for at most `timeout`; then ETIMEDOUT. Blocks: call it under no lock. */
int reach_wait(unsigned interface, const uint8_t source[16], const uint8_t destination[16], nanos timeout,
               struct reach *);
