/* The receivers of packets: a queue pair, the inside of a work queue, queue pair 1, the multicast groups, Ethernet.
 * The loop does not know their kinds, as the transport knows its owner only by struct owner_operations. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "ipc/node.h"
#include "link/udp/udp.h"
#include "runtime/schedule.h"

/* A packet that arrives, and how. */
struct endpoint_arrival {
    struct udp_arrival from;   /* the packet; route NULL: not directly from a network; interface 0: from this host */
    nanos now;                 /* when the round began */
    struct peer *peer;         /* the process whose link brought it; NULL: a network did */
    const struct frame *frame; /* Ethernet: instead of the packet */
    uint32_t along;            /* the frame's `along` */
    bool plain;                /* it is of this host and has no GRH: only the packet, `now` and `peer` are set */
    const uint8_t *forwarded;  /* the first bytes of its frame, if another process forwarded it; or NULL */
};

struct endpoint {
    const struct endpoint_operations *operations;
    struct schedule_timer timer;             /* the earliest of its deadlines */
    bool to_flush, late;                     /* it is in these lists of the loop; under process->progress */
    bool no_room;                            /* it is in the loop's list no_room; under the schedule's lock */
    TAILQ_ENTRY(endpoint) flush, wait, room; /* its entries of the lists */
};

TAILQ_HEAD(endpoint_list, endpoint);

/* The output that an endpoint has to send. */
enum endpoint_output {
    ENDPOINT_NOTHING,
    ENDPOINT_OUTPUT,
    ENDPOINT_LATE, /* an ACK that was not requested, and waits for some rounds */
};

/* All under process->progress; they take the endpoint's own lock. An endpoint that only receives has only `receive`. */
struct endpoint_operations {
    enum endpoint_output (*receive)(struct endpoint *, const struct endpoint_arrival *);
    /* Transmits its output. False: it only owes an ACK, which waits for one round, as `ack_later` allows. */
    bool (*flush)(struct endpoint *, nanos now, bool ack_later);
    /* Fails the endpoint if its completion queue overran; called after some queue has overrun. */
    void (*fail_overrun)(struct endpoint *);
};
