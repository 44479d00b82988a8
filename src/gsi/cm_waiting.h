/* Requests from other hosts without a listener yet.
 *
 * Programs agree over a first connection to make a second one (perftest does), and then the one that connects may be
 * faster than the one that listens. So a request waits for its listener for a moment before it is rejected. There is
 * room for some; requests in excess are rejected at once. */
#ifndef GSI_CM_WAITING_H
#define GSI_CM_WAITING_H

#include "cm/dispatch.h"
#include "link/udp/udp.h"
#include "process/process.h"

enum { CM_WAITING_MAX = 64 };

struct cm_waiting {
    unsigned count;
    struct cm_waiting_request {
        struct dispatch_datagram datagram;
        unsigned interface; /* where it arrived, and from which port */
        uint16_t source_port;
        nanos until; /* then it is rejected */
    } requests[CM_WAITING_MAX];
};

/* Lets it wait; false: no room. */
bool cm_waiting_add(struct cm_waiting *, const struct dispatch_datagram *, const struct udp_arrival *, nanos until);

/* Hands those for which another process of the host listens by now to it. Takes out the next for which this process
 * does, or whose time has passed; false: none. */
bool cm_waiting_next(struct cm_waiting *, struct process *, struct dispatch_datagram *, nanos now);

#endif
