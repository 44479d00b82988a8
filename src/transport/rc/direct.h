/* Work of a reliable connection that its owner does by itself in the peer's memory, without a packet. */
#ifndef TRANSPORT_RC_DIRECT_H
#define TRANSPORT_RC_DIRECT_H

#include "transport/rc/rc.h"

enum { DIRECT_LENGTH_MAX = 1 << 20 }; /* it is done while the program posts, which must not take long */

/* Is there a READ or WRITE that is the oldest work, with nothing before it on its way? */
static inline bool rc_direct_waits(const struct rc *rc)
{
    const struct send_queue *queue = &rc->requester.queue;
    if (queue->head != queue->next || queue->next == queue->tail)
        return false;
    uint8_t opcode = send_queue_at(queue, queue->head)->opcode;
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ;
}

/* Offers such work to owner->direct, one after the other, and completes what it did. The rest is left for rc_transmit.
 * No PSN is used up: to both engines it is as if that work had never been. */
void rc_direct(struct rc *);

#endif
