/* A host for tests: the owner of a manager. Its address is 10.0.0.N, its ports are its own. */
#ifndef CM_TESTING_HOST_H
#define CM_TESTING_HOST_H

#include "cm/dispatch.h"
#include "cm/ports.h"

enum { HOST_PORTS = 512 };

struct host {
    struct manager manager;
    struct hash_entry **buckets;
    struct event_queue queue;
    struct host *peer; /* the rig's */
    struct cm_port port;
    uint16_t space;  /* of the identifiers that a script makes */
    uint8_t address; /* the last byte of it */
    struct port_claim ports[HOST_PORTS];
    unsigned port_count, next_port;
    unsigned blocks;      /* allocated */
    unsigned fail_after;  /* allocations until one fails; 0: none does */
    unsigned fails_again; /* and so many after each; 0: all */
    int route_error;      /* the error of find_route */
    unsigned questions;   /* for the neighbour, until it answers: so often find_route answers EAGAIN first */
    enum reason refused;  /* the last */
    uint64_t dropped[REASON_CM_UNEXPECTED - REASON_CM_BACKLOG + 1];
    nanos linger;       /* by which timewaits are longer */
    unsigned signalled; /* events that the queue's operations signalled */
};

void host_make(struct host *, uint8_t number);
void host_free(struct host *);

/* A sent datagram as it arrives: through the codec, with the way turned round. */
struct dispatch_datagram host_arrival(const struct host *at, const struct host *from,
                                      const struct dispatch_datagram *sent);

#endif
