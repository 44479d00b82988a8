/* The receivers of packets: a queue pair, the inside of a work queue, queue pair 1, the multicast groups, Ethernet. The
 * loop knows endpoints and not their kinds, as the transport knows its owner by struct owner_operations. */
#ifndef RUNTIME_ENDPOINT_H
#define RUNTIME_ENDPOINT_H

#include <stdbool.h>
#include <sys/queue.h>

#include "ipc/node.h"
#include "link/udp/udp.h"
#include "runtime/schedule.h"

/* How a packet came. */
struct endpoint_arrival {
    struct udp_arrival from;   /* the packet; route NULL: not directly from a network; interface 0: from this host */
    nanos now;                 /* when the round began */
    struct peer *peer;         /* the process whose link it came by; NULL: it came from a network */
    const struct frame *frame; /* Ethernet: instead of the packet */
    uint32_t along;            /* the number that the frame brought along */
    bool plain;                /* it is of this host and has no GRH: only the packet, `now` and `peer` are there */
    const uint8_t *forwarded;  /* the first bytes of its frame: another process was handed it by the kernel; or NULL */
};

struct endpoint {
    const struct endpoint_operations *operations;
    struct schedule_timer timer;             /* the earliest of its deadlines */
    bool to_flush, late;                     /* in these lists of the loop; under process->progress */
    bool no_room;                            /* in that list of the schedule; under its lock */
    TAILQ_ENTRY(endpoint) flush, wait, room; /* in these lists */
};

TAILQ_HEAD(endpoint_list, endpoint);

/* The output that an endpoint has to send. */
enum endpoint_output {
    ENDPOINT_NOTHING,
    ENDPOINT_OUTPUT,
    ENDPOINT_LATE, /* an ACK that was not requested, and that waits for some rounds */
};

/* All under process->progress; they take the endpoint's own lock. One that only receives has only `receive`. */
struct endpoint_operations {
    enum endpoint_output (*receive)(struct endpoint *, const struct endpoint_arrival *);
    /* Transmits what it has. False: it only owes an ACK, which waits for one round (`ack_later` says that it may). */
    bool (*flush)(struct endpoint *, nanos now, bool ack_later);
    /* Some completion queue overran: if it is its own, the endpoint fails. */
    void (*fail_overrun)(struct endpoint *);
};

#endif
