/* The requester of SRD: which packet leaves next, and what its answer or its silence means. Pure. */
#pragma once

#include "transport/srd/srd.h"

/* Returns true if there is posted work that its flow does not have yet. */
static inline bool srd_sender_may_admit(const struct srd *srd)
{
    const struct unreliable *common = &srd->common;
    return common->queue.next != common->queue.tail && common->transmitting && !common->failed && !common->draining;
}

/* Gives posted work to its flows. Ends what can't be sent. */
void srd_sender_admit_posted(struct srd *);

static inline void srd_sender_admit(struct srd *srd)
{
    if (srd_sender_may_admit(srd))
        srd_sender_admit_posted(srd);
}

/* The work whose address the next packet goes to; NULL: the requester has no packet. */
const struct send_wqe *srd_sender_next(struct srd *);

/* Writes that packet. False: it can't be made, and its work ended. */
bool srd_sender_transmit(struct srd *, struct packet *out, struct iovec *pieces, nanos now);

/* The packet that was written last was not sent: the memory of its payload is gone. */
void srd_sender_unreadable(struct srd *);

/* Lets the flow of the next packet wait, as its link has no room. */
void srd_sender_hold(struct srd *, nanos now);

/* Lets flows that wait for room try again. */
void srd_sender_retry(struct srd *);

/* The receiver of the next packet does not exist: ends the work of its flow. */
void srd_sender_nobody(struct srd *);

/* Does what is due: repeats packets, or ends their work. */
void srd_sender_expire(struct srd *, nanos now);

/* Ends the work of a packet that is in no list; its other packets are forgotten. */
void srd_sender_fail(struct srd *, struct srd_flight *, enum ibv_wc_status, enum reason);

/* Ends work with which nothing is under way. */
void srd_sender_fail_work(struct srd *, struct srd_flow *, uint32_t position, enum ibv_wc_status, enum reason);

/* Ends all work of a flow. */
void srd_sender_fail_flow(struct srd *, struct srd_flow *, enum ibv_wc_status, enum reason);

/* Lets the work of the flow whose receiver had no receive wait a moment; the flow's busy_wait is not waiting. */
void srd_sender_await_receive(struct srd *, struct srd_flow *, nanos now);
/* Lets waiting work try again whose receiver had no receive: at most `most` messages. */
void srd_sender_try_busy(struct srd *, struct srd_flow *, uint32_t most);

/* The operation of this packet of the work. */
enum operation srd_sender_operation(const struct send_wqe *, const struct srd_flight *);
