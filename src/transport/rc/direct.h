/* Which work goes without a packet (transport/direct.h), and when. */
#ifndef TRANSPORT_RC_DIRECT_H
#define TRANSPORT_RC_DIRECT_H

#include "transport/direct.h"
#include "transport/rc/rc.h"

enum {
    DIRECT_PACKETS_FIRST = 1024,
    DIRECT_NEAR = 64, /* works behind which one may be done directly soon */
};

/* Returns true for a READ or WRITE. One with an immediate is not, nor a READ into a receive, which the owner has tried
 * by itself before it was posted. */
static inline bool rc_direct_is(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_RDMA_WRITE ||
           (work->opcode == IBV_WR_RDMA_READ && !(work->flags & WORK_INTO_RECEIVE));
}

/* Where settings.direct: returns true for one that the owner wants to do without a packet. */
static inline bool rc_direct_goes(const struct rc *rc, const struct send_wqe *work)
{
    return rc_direct_is(work) && work->length > rc->settings.direct_above;
}

/* The next work to be sent, if it is one; NULL otherwise. */
static inline const struct send_wqe *rc_direct_next(const struct rc *rc)
{
    const struct send_queue *queue = &rc->requester.queue;
    const struct send_wqe *work = send_queue_at(queue, queue->next);
    return queue->next != queue->tail && rc_direct_is(work) ? work : NULL;
}

/* Where settings.direct: returns true if this work, the next, waits until nothing is on its way, to be done so then.
 * Otherwise a program that always has some posted would never come to it. It does not wait for other kinds of work than
 * READs and WRITEs, which need the peer's processor, nor for the next DIRECT_PACKETS_FIRST works after one that had to
 * go as packets. */
static inline bool rc_direct_holds(const struct rc *rc, const struct send_wqe *work)
{
    const struct requester *requester = &rc->requester;
    return requester->queue.head != requester->queue.next && !requester->packets_first && rc_direct_goes(rc, work) &&
           work->length <= DIRECT_LENGTH_MAX && (int32_t)(requester->mixed_until - requester->queue.head) <= 0;
}

/* This work begins as packets. */
void rc_direct_begun(struct rc *, const struct send_wqe *);

/* engine_transmit_directly. */
void rc_direct(struct rc *, direct_doer *doer);

#endif
