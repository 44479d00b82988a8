/* Control messages between the process of an XRC_RECV queue pair and one that stands in for it (xrc_front.h,
 * xrc_standin.h). They are frames of the link, in order with the packets. Nothing that they say is trusted. */
#ifndef VERBS_KINDS_XRC_XRC_CONTROL_H
#define VERBS_KINDS_XRC_XRC_CONTROL_H

#include "verbs/kinds/xrc/xrcd.h"

struct frame;
struct peer;
struct qp;

enum xrc_control_kind {
    XRC_LEND = 1, /* to the stand-in: requests come to you now; it is made when there is none */
    XRC_RECALL,   /* no more come; give the position back */
    XRC_OVER,     /* the queue pair has ended, failed or was reset: so do you */
    XRC_RETURN,   /* from the stand-in: here it is */
    XRC_KEEP,     /* a message has begun: I must have the next request, for any SRQ */
    XRC_FAILED,   /* the queue pair fails, with this event or none */
};

struct xrc_control {
    uint32_t kind;
    uint32_t number; /* of the queue pair */
    uint32_t turn;   /* how often the position was lent: an response to another one is stale */
    uint32_t expected_psn, msn;
    uint32_t segment, access;
    uint32_t event; /* enum ibv_event_type and 1; 0: none */
    uint8_t nak_sent, exact, min_rnr_timer, max_dest_rd_atomic;
    struct xrcd_key domain;
};

/* Sends it, as what concerns this queue pair; false: the link has no room now, and the queue pair waits for some. Under
 * qp->lock. */
bool xrc_control_send(struct qp *, struct peer *, const struct xrc_control *);

/* The same for a queue pair that won't wait any more: without room the message is lost. */
void xrc_control_try(struct qp *, struct peer *, const struct xrc_control *);

/* False: that is none. */
bool xrc_control_read(const struct frame *, struct xrc_control *);

#endif
