/* Control messages between the process of an XRC_RECV queue pair and a process with a substitute for it
 * (xrc_front.h, xrc_substitute.h). They are frames of the link, in order with the packets. They are not trusted. */
#pragma once

#include "verbs/kinds/xrc/xrcd.h"

struct frame;
struct peer;
struct qp;

enum xrc_control_kind {
    XRC_LEND = 1, /* to the substitute, which is made first: execute requests now */
    XRC_RECALL,   /* no more requests follow: give the position back */
    XRC_OVER,     /* end, as the queue pair has ended, failed or was reset */
    XRC_RETURN,   /* from the substitute: the position */
    XRC_KEEP,     /* a message has begun: the substitute must have the next request, for any SRQ */
    XRC_FAILED,   /* the queue pair must fail, with this event, if any */
};

struct xrc_control {
    uint32_t kind;
    uint32_t number; /* of the queue pair */
    uint32_t turn;   /* how often the position was lent: a response to another turn is stale */
    uint32_t expected_psn, msn;
    uint32_t segment, access;
    uint32_t event; /* enum ibv_event_type plus 1; or 0 */
    uint8_t nak_sent, exact, min_rnr_timer, max_dest_rd_atomic;
    struct xrcd_key domain;
};

/* Sends a message for this queue pair; false: the link has no room now, and the queue pair waits for room. Under
 * qp->lock. */
bool xrc_control_send(struct qp *, struct peer *, const struct xrc_control *);

/* Sends a message for a queue pair that won't wait any more: without room the message is lost. */
void xrc_control_try(struct qp *, struct peer *, const struct xrc_control *);

/* Reads a message. False: the frame is not one. */
bool xrc_control_read(const struct frame *, struct xrc_control *);
