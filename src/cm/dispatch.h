/* The inputs and outputs of a manager: messages and time. The owner calls dispatch_transmit until it returns false,
 * after every other call that takes a manager or an identifier, and dispatch_expire at dispatch_deadline. */
#ifndef CM_DISPATCH_H
#define CM_DISPATCH_H

#include "cm/identifier.h"

/* A message and its way: from the port to the peer when it is sent, from the peer to the port when it has arrived. Of
 * an arrival the packet says so, nothing in the message. */
struct dispatch_datagram {
    struct cm_route route;
    struct cm_message message;
};

/* A message has arrived. True: `reply` is to be sent, which belongs to no session; never for a message that is a reply
 * itself, except a DREQ. */
bool dispatch_receive(struct manager *, const struct dispatch_datagram *, struct dispatch_datagram *reply, nanos now);

/* A request (REQ) has arrived that is rejected in the place of the program that listens: with this reason and private
 * data, of which as much is taken as a REJ has room for. True: `reply` is to be sent. */
bool dispatch_reject(const struct dispatch_datagram *, struct dispatch_datagram *reply, uint16_t reason,
                     const void *data, size_t size);

/* The next message to send; false: none. */
bool dispatch_transmit(struct manager *, struct dispatch_datagram *);

/* A process of this host, by the number that routes name it with, has ended: its connections with this one end, too,
 * and requests of it that no program has fetched are forgotten. */
void dispatch_bereave(struct manager *, uint32_t neighbor, nanos now);

/* Returns true if there is a connection with a peer at this address, or an exchange that may become one. */
bool dispatch_knows(const struct manager *, const uint8_t gid[16]);

nanos dispatch_deadline(const struct manager *);
void dispatch_expire(struct manager *, nanos now);

#endif
