/* The parts that listen to the links of a process, or disturb them: the capture of packets and the faults that its user
 * asked for. A process without either has none, and pays for a look at that. An adverse process (adverse/adverse.h)
 * always has them, so that all packets go the long way. */
#ifndef TAP_TAPS_H
#define TAP_TAPS_H

#include "link/udp/udp.h"
#include "runtime/schedule.h"
#include <infiniband/verbs.h>
#include <sys/queue.h>

#include "ipc/node.h"
#include "tap/capture.h"
#include "tap/fault.h"

TAILQ_HEAD(delayed_list, delayed);

struct taps {
    struct capture *capture;  /* NULL: none */
    atomic_bool faulty;       /* frames of queue pairs may meet rules of a script, or of SOFTVERBS_FAULT */
    _Atomic uint64_t streams; /* given to queue pairs */
    struct node *node;
    struct schedule *schedule;
    const atomic_bool *closed;   /* nothing may be sent any more, or taken back */
    struct schedule_timer timer; /* for what is held back */
    _Atomic uint64_t managed;    /* messages of queue pair 1, which are a separate stream */

    struct lock lock;            /* delay.c: all below */
    struct delayed_list delayed; /* by time */
    size_t delayed_bytes;
    _Atomic uint32_t releases;  /* how often what was held was released */
    uint32_t overtakable;       /* of them, those that wait for others */
    uint32_t stuck;             /* of them, those that wait for room */
    const struct link *leaving; /* by which the timers send one at this moment, which is in no list; NULL: none */
};

/* Opens the taps that the configuration asks for; NULL: none, or they can't be opened, which is logged. */
struct traffic_flow;

struct taps *taps_open(struct node *, struct schedule *, const atomic_bool *closed);
/* Of a process that runs: from here on packets and messages meet the rules of a script. `taps` NULL: there were none,
 * and what comes back is new; NULL: no memory. */
struct taps *taps_script(struct taps *, struct node *, struct schedule *, const atomic_bool *closed);
/* Frames that were held back are gone already (delay_flush). */
void taps_close(struct taps *);

/* The packet to the capture, if there is one. Under qp->lock. `peer` NULL: `link` leads to another host. */
void taps_sent(const struct traffic_flow *, const struct peer *peer, const struct link *link, const struct frame *,
               const char *note);
/* The frame as it leaves: where there is a capture, one of a connection inside the host says what its sender captures,
 * for the capture of its receiver, in `room`. Under qp->lock. */
struct frame taps_leave(const struct traffic_flow *, const struct peer *, const struct frame *,
                        uint8_t room[FRAME_HEADERS_MAX]);
/* An answer to a packet that came over a network. */
void taps_responded(const struct taps *, const struct packet *request, const struct link *, const struct frame *);
/* A packet of queue pair 1, whose frame has a GRH, and what happens to it; `peer` as above. */
void taps_managed(const struct taps *, const struct peer *peer, const struct link *, const struct frame *,
                  const struct fault *);
/* The fault of the next message of queue pair 1 of this name that this process sends on its own account: it is lost,
 * repeated or corrupted. Thread-safe. */
struct fault taps_disturb(struct taps *, const char *name);
/* `route` NULL: it came from this host. `flow` NULL: it belongs to no queue pair. */
void taps_received(const struct taps *, const struct traffic_flow *flow, const struct packet *,
                   const struct datagram_route *route);
/* A datagram that could not be decoded, as it came. */
void taps_refused(const struct taps *, const struct udp_refusal *);
void taps_received_frame(const struct taps *, const struct frame *);

#endif
