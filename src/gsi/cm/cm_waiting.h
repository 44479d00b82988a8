/* Requests from other hosts that have no listener yet.
 *
 * Programs agree over a first connection to make a second one (perftest does), and then the program that connects may
 * be faster than the one that listens. So a request waits for its listener for a moment before it is rejected. There is
 * room for CM_WAITING_MAX; further requests are rejected at once. */
#pragma once

#include "cm/dispatch.h"
#include "link/udp/udp.h"
#include "verbs/object/process_objects.h"

enum { CM_WAITING_MAX = 64 };

struct cm_waiting {
    unsigned count;
    struct cm_waiting_request {
        struct dispatch_datagram datagram;
        unsigned interface;   /* where it arrived */
        uint16_t source_port; /* the sender's UDP port */
        nanos until;          /* when it is rejected */
    } requests[CM_WAITING_MAX];
};

/* Keeps a request until it has a listener; false: there is no room. */
bool cm_waiting_add(struct cm_waiting *, const struct dispatch_datagram *, const struct udp_arrival *, nanos until);

/* Forwards each request for which another process of the host listens by now. Takes out the next request for which this
 * process listens, or whose time is over; false: no such request. */
bool cm_waiting_next(struct cm_waiting *, struct process *, struct dispatch_datagram *, nanos now);
