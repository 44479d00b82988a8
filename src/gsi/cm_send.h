/* Messages of the connection manager on their way out. */
#ifndef GSI_CM_SEND_H
#define GSI_CM_SEND_H

#include "cm/dispatch.h"
#include "process/process.h"
#include "wire/packet.h"

enum cm_sent {
    CM_SENT,    /* or dropped, as it leads nowhere */
    CM_NO_ROOM, /* now; nothing has happened */
    CM_UNSENT,  /* the kernel refused it: lost, as on a network */
    CM_NOBODY,  /* a request of this host for a service that has no listener here; nothing has happened */
};

/* A packet for queue pair 1, and what it consists of. */
struct cm_packet {
    struct packet packet; /* points into the rest */
    struct iovec piece;
    uint8_t grh[40], bytes[MAD_BYTES];
};

void cm_make_packet(const struct dispatch_datagram *, struct cm_packet *);

/* Back again; false: it is not the connection manager's, or is damaged. */
bool cm_read_packet(const struct packet *, struct cm_message *);

/* The process of this host that the message is for, whose connections or port this is: the one that listens; of a reply
 * the owner of its communication ID. `gid`: where it is sent to. NULL: none. To be put back. */
struct peer *cm_find_taker(struct process *, const struct cm_message *, const uint8_t gid[16]);

/* The process of a request that has no listener (any more): it may be a repeat of one whose connection is there. To be
 * put back; NULL: none. */
struct peer *cm_find_former_taker(struct process *, const struct cm_message *, const uint8_t gid[16]);

/* Returns true if it is the REJ of a requester that gives up an unanswered request, and so has no communication ID of
 * the other side. */
bool cm_is_farewell(const struct cm_message *);

/* Counts the message when it leaves, and what happens to it. *to: the process of this host that it went to, to be put
 * back; NULL: none. `partner`: the one that has taken a message of this session before, NULL if none has, for
 * cm_is_farewell. `insist`: a request without a listener goes to the process that listened last, or to this one, which
 * rejects it. */
enum cm_sent cm_send(struct process *, const struct dispatch_datagram *, struct peer *partner, bool insist,
                     struct peer **to);

#endif
