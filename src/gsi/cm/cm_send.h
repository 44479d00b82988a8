/* Sending messages of the connection manager. */
#pragma once

#include "cm/dispatch.h"
#include "verbs/object/process_objects.h"
#include "wire/packet.h"

enum cm_sent {
    CM_SENT,    /* or dropped, as its route leads nowhere */
    CM_NO_ROOM, /* the link has no room now; nothing was done */
    CM_UNSENT,  /* the kernel refused it: it is lost, as on a network */
    CM_NOBODY,  /* a request within this host whose service has no listener; nothing was done */
};

/* A packet for queue pair 1, with the memory that it points to. */
struct cm_packet {
    struct packet packet; /* points to the members below */
    struct iovec piece;
    uint8_t grh[40], bytes[MAD_BYTES];
};

void cm_make_packet(const struct dispatch_datagram *, struct cm_packet *);

/* Reads the message of a packet; false: the packet is not the connection manager's, or is damaged. */
bool cm_read_packet(const struct packet *, struct cm_message *);

/* Returns the process of this host that the message is for: a request is for the process that listens at the address
 * `gid`, to which it is sent, a reply for the owner of its communication ID. NULL: no such process. node_put gives it
 * back. */
struct peer *cm_find_taker(struct process *, const struct cm_message *, const uint8_t gid[16]);

/* Returns the process that last listened for the request, which may repeat one that has a connection. NULL: no such
 * process. node_put gives it back. */
struct peer *cm_find_former_taker(struct process *, const struct cm_message *, const uint8_t gid[16]);

/* Returns true for the REJ of a requester that gives up an unanswered request, and so has no communication ID of the
 * other side. */
bool cm_is_farewell(const struct cm_message *);

/* Sends the message and counts it and its faults. *to: the process of this host to which it was sent, given back by
 * node_put; NULL: no process. `partner`: the process that took an earlier message of this session, to which a farewell
 * is sent; or NULL. `insist`: a request without a listener is sent to the process that listened last, or to this one,
 * which rejects it. */
enum cm_sent cm_send(struct process *, const struct dispatch_datagram *, struct peer *partner, bool insist,
                     struct peer **to);
