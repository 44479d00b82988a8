/* The state of a queue pair that passes requests on to other processes (xrc_front.h): the processes that have a
 * stand-in, which of them has the position, and what waits. Its end is here, too. All under qp->lock. */
#ifndef VERBS_KINDS_XRC_XRC_FRONT_STATE_H
#define VERBS_KINDS_XRC_XRC_FRONT_STATE_H

#include "verbs/kinds/xrc/xrc_control.h"
#include "verbs/qp/qp.h"
#include "wire/packet.h"

/* A packet that could not go on at once. */
struct xrc_packet {
    STAILQ_ENTRY(xrc_packet) next;
    struct packet packet;
    struct iovec piece;
    uint8_t bytes[];
};

STAILQ_HEAD(xrc_packets, xrc_packet);

/* A process that was lent the position since the queue pair was last reset, so it has a stand-in. */
struct xrc_place {
    LIST_ENTRY(xrc_place) siblings;
    struct peer *peer; /* held */
};

struct xrc_front {
    LIST_HEAD(, xrc_place) places;
    struct peer *holder; /* of one of them: its stand-in has the position; NULL: the queue pair itself */
    uint32_t since;      /* `turn` when the queue pair was last reset or failed */
    uint32_t srq;        /* which brought the requests there; 0: none */
    uint32_t turn;
    bool recalled;    /* the position was asked for, and no response has come */
    bool kept;        /* the next request is the holder's, for any SRQ */
    unsigned waiting; /* packets in both lists */
    struct xrc_packets requests, responses;
};

/* The queue pair's front, which it has from then on; qp_release frees it. NULL: no memory. */
struct xrc_front *xrc_front_make(struct qp *);

/* Puts a copy of the packet into one of the front's lists. Without memory for it the packet is lost, as on a network;
 * the same where a peer has no window. */
void xrc_front_keep(struct xrc_front *, struct xrc_packets *, const struct packet *);

/* The queue pair itself has the position. */
void xrc_front_forget_holder(struct qp *);

/* The place of this process; NULL: it has none. */
struct xrc_place *xrc_front_find_place(struct xrc_front *, const struct peer *);
/* The reference to the peer becomes the place's. False: no memory. */
bool xrc_front_enter_place(struct qp *, struct peer *);
void xrc_front_leave_place(struct qp *, struct xrc_place *);

/* A message of this kind to a stand-in of the queue pair, in this turn. */
struct xrc_control xrc_front_message(const struct qp *, enum xrc_control_kind);

/* The queue pair fails: no more requests, the stand-ins end. The SRQs are not its own, and go on. xrc_front_clear: nor
 * responses. */
void xrc_front_end(struct qp *);
void xrc_front_clear(struct qp *);

#endif
