/* The parts that listen to the links of a process, or disturb them: the capture of packets and the faults that its
 * user asked for. A process without either has no taps, and pays for one look. A process whose queue pairs are
 * disturbed or recorded always has them, so that all its packets take the long ways. */
#pragma once

#include "link/udp/udp.h"
#include "runtime/schedule.h"
#include <infiniband/verbs.h>
#include <sys/queue.h>

#include "ipc/node.h"
#include "tap/capture.h"
#include "tap/fault.h"

TAILQ_HEAD(delayed_list, delayed);

struct taps {
    struct capture *capture;  /* may be NULL */
    atomic_bool faulty;       /* frames of queue pairs may meet rules of a script, or of SOFTVERBS_FAULT */
    _Atomic uint64_t streams; /* given to queue pairs */
    struct node *node;
    struct schedule *schedule;
    const atomic_bool *closed;   /* no frame may be sent any more, or taken back */
    struct schedule_timer timer; /* sends what is held back */
    _Atomic uint64_t managed;    /* messages of queue pair 1, which are a separate stream */

    struct lock lock;            /* delay.c: all below */
    struct delayed_list delayed; /* by time */
    size_t delayed_bytes;
    _Atomic uint32_t releases;  /* how often held frames were released */
    uint32_t overtakable;       /* number of delayed frames that wait for others */
    uint32_t stuck;             /* number of delayed frames that wait for room */
    const struct link *leaving; /* the link by which the timers send a frame that is no longer in the list; or NULL */
};

struct traffic_flow;

/* Opens the taps that the configuration wants; NULL: it wants no taps, or they can't be opened, which is logged. */
struct taps *taps_open(struct node *, struct schedule *, const atomic_bool *closed);
/* Makes the packets and messages of a running process meet the rules of a script. Returns `taps`, or new ones where
 * these are NULL; NULL: no memory. */
struct taps *taps_script(struct taps *, struct node *, struct schedule *, const atomic_bool *closed);
/* Closes the taps, after delay_flush. */
void taps_close(struct taps *);

/* Captures a packet that is sent, if a capture is open. Under qp->lock. `peer` NULL: `link` leads to another host. */
void taps_sent(const struct traffic_flow *, const struct peer *peer, const struct link *link, const struct frame *,
               const char *note);
/* Returns the frame as it leaves: if packets are captured, a frame inside the host has the sender's fields for the
 * receiver's capture, in `room`. Under qp->lock. */
struct frame taps_leave(const struct traffic_flow *, const struct peer *, const struct frame *,
                        uint8_t room[FRAME_HEADERS_MAX]);
/* Captures the answer to a packet from a network. */
void taps_responded(const struct taps *, const struct packet *request, const struct link *, const struct frame *);
/* Captures a packet of queue pair 1, whose frame has a GRH, and its fault; `peer` as in taps_sent. */
void taps_managed(const struct taps *, const struct peer *peer, const struct link *, const struct frame *,
                  const struct fault *);
/* Draws the fault of the next message of queue pair 1 with this name that this process sends itself: it is lost,
 * repeated or corrupted. Thread-safe. */
struct fault taps_disturb(struct taps *, const char *name);
/* Returns true if the adapter loses and reorders frames of this flow, whose service doesn't vary its packets itself as
 * RC does; then taps_lose adds the faults of the next frame. Only datagrams overtake each other, as packets of a
 * connection are parts of messages. Under qp->lock. */
bool taps_may_lose(const struct traffic_flow *);
void taps_lose(const struct traffic_flow *, struct fault *);
/* Ends all that is late in this process, which ends. True: queue pairs may still hold packets back. */
bool taps_end_lateness(void);
/* Captures a packet that arrived. `route` NULL: from this host. `flow` NULL: it belongs to no queue pair. */
void taps_received(const struct taps *, const struct traffic_flow *flow, const struct packet *,
                   const struct datagram_route *route);
/* Captures a datagram that could not be decoded, unchanged. */
void taps_refused(const struct taps *, const struct udp_refusal *);
void taps_received_frame(const struct taps *, const struct frame *);
