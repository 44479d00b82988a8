/* The work that is done without a packet (transport/direct.h), and the time for it. */
#pragma once

#include "transport/direct.h"
#include "transport/rc/rc.h"

enum {
    DIRECT_PACKETS_FIRST = 1024,
    DIRECT_NEAR = 64, /* works after which one may be done directly soon */
};

/* Returns true for a READ or WRITE, except with an immediate, and except a READ into a receive, which the owner has
 * tried by itself before it was posted. */
static inline bool rc_direct_is(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_RDMA_WRITE ||
           (work->opcode == IBV_WR_RDMA_READ && !(work->flags & WORK_INTO_RECEIVE));
}

/* Returns true if settings.direct, and the owner wants to do this work without a packet. */
static inline bool rc_direct_goes(const struct rc *rc, const struct send_wqe *work)
{
    return rc_direct_is(work) && work->length > rc->settings.direct_above;
}

/* The next work to be sent, if rc_direct_is; otherwise NULL. */
static inline const struct send_wqe *rc_direct_next(const struct rc *rc)
{
    const struct send_queue *queue = &rc->requester.queue;
    const struct send_wqe *work = send_queue_at(queue, queue->next);
    return queue->next != queue->tail && rc_direct_is(work) ? work : NULL;
}

/* Returns true if settings.direct, and this work, the next, waits until nothing is on its way, to be done directly
 * then. Otherwise a program that always has work posted would never do any directly. It does not wait for other
 * kinds of work than READs and WRITEs, which need the peer's processor, nor during the next DIRECT_PACKETS_FIRST
 * works after one that had to be sent as packets. */
static inline bool rc_direct_holds(const struct rc *rc, const struct send_wqe *work)
{
    const struct requester *requester = &rc->requester;
    return requester->queue.head != requester->queue.next && !requester->packets_first && rc_direct_goes(rc, work) &&
           work->length <= DIRECT_LENGTH_MAX && (int32_t)(requester->mixed_until - requester->queue.head) <= 0;
}

/* Notes that this work begins as packets. */
void rc_direct_begun(struct rc *, const struct send_wqe *);

/* Does the work of engine_transmit_directly. */
void rc_direct(struct rc *, direct_doer *doer);
