/* The state of a queue pair that forwards requests to other processes (xrc_front.h): the processes that have a
 * substitute, the one that has the position, and the packets that wait; and its end. All under qp->lock. */
#pragma once

#include "verbs/kinds/xrc/xrc_control.h"
#include "wire/packet.h"

/* A packet that could not be forwarded at once. */
struct xrc_packet {
    STAILQ_ENTRY(xrc_packet) next;
    struct packet packet;
    struct iovec piece;
    uint8_t bytes[];
};

STAILQ_HEAD(xrc_packets, xrc_packet);

/* A process that was lent the position since the queue pair was last reset: it has a substitute of the queue pair. */
struct xrc_place {
    LIST_ENTRY(xrc_place) siblings;
    struct peer *peer; /* with a reference */
};

struct xrc_front {
    LIST_HEAD(, xrc_place) places;
    struct peer *holder; /* of the place whose substitute has the position; NULL: the queue pair itself has it */
    uint32_t since;      /* `turn` when the queue pair was last reset or failed */
    uint32_t srq;        /* the SRQ whose requests the holder executes; or 0 */
    uint32_t turn;       /* how often the position was lent */
    bool recalled;       /* the position was asked for, and no response has arrived */
    bool kept;           /* the next request is the holder's, for any SRQ */
    unsigned waiting;    /* packets in both lists */
    struct xrc_packets requests, responses;
};

/* Makes the queue pair's front, which qp_release frees. NULL: no memory. */
struct xrc_front *xrc_front_make(struct qp *);

/* Puts a copy of the packet into one of the front's lists. Without memory the packet is lost, as on a network; also
 * when too many wait, as the peer has no window. */
void xrc_front_keep(struct xrc_front *, struct xrc_packets *, const struct packet *);

/* Notes that the queue pair itself has the position. */
void xrc_front_forget_holder(struct qp *);

/* Returns the place of this process; or NULL. */
struct xrc_place *xrc_front_find_place(struct xrc_front *, const struct peer *);
/* Makes a place, which takes the reference to the peer. False: no memory. */
bool xrc_front_enter_place(struct qp *, struct peer *);
void xrc_front_leave_place(struct qp *, struct xrc_place *);

/* Makes a message of this kind to a substitute of the queue pair, in this turn. */
struct xrc_control xrc_front_message(const struct qp *, enum xrc_control_kind);

/* xrc_front_end, when the queue pair fails, drops requests and ends the substitutes; the SRQs are not its own, and
 * stay. xrc_front_clear drops responses, too. */
void xrc_front_end(struct qp *);
void xrc_front_clear(struct qp *);
