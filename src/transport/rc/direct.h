/* The work that the owner does without a packet (transport/direct.h), and when it does it. */
#pragma once

#include "transport/direct.h"
#include "transport/rc/rc.h"

enum {
    DIRECT_PACKETS_FIRST = 1024, /* works that are sent as packets after one that could not be done directly */
    DIRECT_NEAR = 64,            /* works that ask for an ACK, as a later one may soon be done directly */
};

/* Returns true for a READ, and for a WRITE without immediate. False for a READ into a receive, which the owner has
 * tried to do by itself before it was posted. */
static inline bool rc_direct_is(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_RDMA_WRITE ||
           (work->opcode == IBV_WR_RDMA_READ && !(work->flags & WORK_INTO_RECEIVE));
}

/* Returns true if the owner wants to do this work without a packet, given settings.direct. */
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

/* Returns true if this work, the next one, must wait until nothing is on its way, to be done directly then, given
 * settings.direct. Otherwise a program that always has work posted would never do any directly. Work does not wait for
 * other kinds than READs and WRITEs, which need the peer's processor, nor if it is one of the DIRECT_PACKETS_FIRST
 * works after one that had to be sent as packets. */
static inline bool rc_direct_holds(const struct rc *rc, const struct send_wqe *work)
{
    const struct requester *requester = &rc->requester;
    return requester->queue.head != requester->queue.next && !requester->packets_first && rc_direct_goes(rc, work) &&
           work->length <= DIRECT_LENGTH_MAX && (int32_t)(requester->mixed_until - requester->queue.head) <= 0;
}

/* Notes that the packets of this work begin to be sent. */
void rc_direct_begun(struct rc *, const struct send_wqe *);

/* Does the work of engine_transmit_directly. */
void rc_direct(struct rc *, direct_doer *doer);
