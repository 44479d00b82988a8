/* A host for tests: the owner of a manager, with the address 10.0.0.N and its own ports. */
#pragma once

#include "cm/dispatch.h"
#include "cm/ports.h"

enum { HOST_PORTS = 512 };

struct host {
    struct manager manager;
    struct hash_entry **buckets;
    struct event_queue queue;
    struct host *peer; /* the rig's */
    struct cm_port port;
    uint16_t space;  /* for identifiers that a script makes */
    uint8_t address; /* its last byte */
    struct port_claim ports[HOST_PORTS];
    unsigned port_count, next_port;
    unsigned blocks;      /* allocated */
    unsigned fail_after;  /* allocations until one fails; 0: no allocation fails */
    unsigned fails_again; /* allocations between further failures; 0: all fail */
    int route_error;      /* the error of find_route */
    bool loses;           /* routes and groups get no answer */
    unsigned questions;   /* how often find_route first returns EAGAIN, until the neighbour answers */
    enum reason refused;  /* the last reason */
    uint64_t dropped[REASON_CM_UNEXPECTED - REASON_CM_BACKLOG + 1];
    nanos linger;       /* time that is added to timewaits */
    unsigned signalled; /* events that the queue's operations signalled */
};

void host_make(struct host *, uint8_t number);
void host_free(struct host *);

/* A sent datagram as it arrives: coded and decoded, with the route reversed. */
struct dispatch_datagram host_arrival(const struct host *at, const struct host *from,
                                      const struct dispatch_datagram *sent);
