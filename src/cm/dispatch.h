/* The inputs and outputs of a manager: messages and time. After every other call that takes a manager or an identifier,
 * the owner calls dispatch_transmit until it returns false; and dispatch_expire at dispatch_deadline. */
#pragma once

#include "cm/identifier.h"

/* A message and its route: from the port to the peer when it is sent, from the peer to the port when it has arrived.
 * The packet decides the route of an arrival; addresses in the message do not count. */
struct dispatch_datagram {
    struct cm_route route;
    struct cm_message message;
};

/* Takes a message that has arrived. True: send `reply`, which belongs to no session: it answers a request, a DREQ of no
 * session, or a REP of a queue pair that has a connection already. */
bool dispatch_receive(struct manager *, const struct dispatch_datagram *, struct dispatch_datagram *reply, nanos now);

/* Rejects a REQ instead of the program that listens, with this reason and private data, which is cut to the room of a
 * REJ. True: send `reply`. */
bool dispatch_reject(const struct dispatch_datagram *, struct dispatch_datagram *reply, uint16_t reason,
                     const void *data, size_t size);

/* Takes the next message to send; false: there is no message. */
bool dispatch_transmit(struct manager *, struct dispatch_datagram *);

/* Called when the process of this host whose number in routes is `neighbor` has ended: ends connections with it, and
 * forgets its requests that no program has fetched. */
void dispatch_bereave(struct manager *, uint32_t neighbor, nanos now);

/* Returns true if there is a session with a peer at this address. */
bool dispatch_knows(const struct manager *, const uint8_t gid[16]);

nanos dispatch_deadline(const struct manager *);
void dispatch_expire(struct manager *, nanos now);
