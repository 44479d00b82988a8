/* Work of a reliable connection that its owner does by itself in the peer's memory, without a packet. */
#ifndef TRANSPORT_RC_DIRECT_H
#define TRANSPORT_RC_DIRECT_H

#include "transport/rc/rc.h"

enum {
    DIRECT_LENGTH_MAX = 1 << 20, /* it is done while the program posts, which must not take long */
    DIRECT_TOGETHER = 16,
    DIRECT_PACKETS_FIRST = 1024,
    DIRECT_NEAR = 64, /* works behind which one may be done directly soon */
};

/* Is this a READ or WRITE? One with an immediate is not. */
static inline bool rc_direct_is(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_RDMA_WRITE || work->opcode == IBV_WR_RDMA_READ;
}

/* Is the next work to be sent one? */
static inline bool rc_direct_next(const struct rc *rc)
{
    const struct send_queue *queue = &rc->requester.queue;
    return queue->next != queue->tail && rc_direct_is(send_queue_at(queue, queue->next));
}

/* Where settings.direct: does this work, the next, wait until nothing is on its way, to be done so then? Otherwise a
 * program that always has some posted would never come to it. It does not wait for other kinds of work than READs and
 * WRITEs, which need the peer's processor, nor for the next DIRECT_PACKETS_FIRST works after one that had to go as
 * packets. */
static inline bool rc_direct_holds(const struct rc *rc, const struct send_wqe *work)
{
    const struct requester *requester = &rc->requester;
    return requester->queue.head != requester->queue.next && !requester->packets_first && rc_direct_is(work) &&
           work->length && work->length <= DIRECT_LENGTH_MAX &&
           (int32_t)(requester->mixed_until - requester->queue.head) <= 0;
}

/* This work begins as packets. */
void rc_direct_begun(struct rc *, const struct send_wqe *);

/* READs or WRITEs that are done at one time: what each asks for, and the local memory of all, one behind the other, as
 * pieces of which the last is not empty. Only WRITEs are more than one. */
struct direct_works {
    uint32_t count, piece_count;
    uint32_t length; /* of all; at most DIRECT_LENGTH_MAX */
    const struct send_wqe *works[DIRECT_TOGETHER];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
};

/* Does them in the peer's memory: true, and all are done, in their order. False: they must go as packets, as if nothing
 * had been tried. */
typedef bool rc_direct_doer(struct engine_owner *, const struct direct_works *);

/* Offers such work to the owner's `doer`, WRITEs up to DIRECT_TOGETHER at a time, when nothing is on its way, and
 * completes what it did. The rest is left for rc_transmit.
 * No PSN is used up: to both engines it is as if that work had never been.
 * The doer is an argument, and no operation of the owner, so that it can be made part of the caller: processors
 * mispredict each return behind the doer's system call. */
void rc_direct(struct rc *, rc_direct_doer *doer);

#endif
