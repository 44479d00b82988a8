#include "transport/rc/direct.h"

#include "transport/gather.h"
#include "transport/retire.h"

/* Whatever is wrong with it, or unusual, is not for here. */
static bool direct_may(const struct rc *rc, const struct send_wqe *work)
{
    bool reads = work->opcode == IBV_WR_RDMA_READ;
    return !work->started && !(work->flags & WORK_INTO_RECEIVE) && work->length && work->length <= DIRECT_LENGTH_MAX &&
           work->length <= rc->settings.max_message && (!reads || rc->settings.max_rd_atomic);
}

static bool direct_is_done(struct rc *rc, const struct send_wqe *work)
{
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint32_t count;
    unsigned access = work->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
    return !gather(rc->owner, work, access, 0, work->length, pieces, &count) &&
           rc->owner->operations->direct(rc->owner, work, pieces, count);
}

static bool direct_is_open(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    return rc->transmitting && !rc->failed && !requester->draining && !requester->rnr_waiting && !requester->stalled &&
           rc->owner->operations->direct;
}

/* A completion may make the owner fail the engine. */
void rc_direct(struct rc *rc)
{
    struct send_queue *queue = &rc->requester.queue;
    while (queue->head == queue->next && rc_direct_next(rc) && direct_is_open(rc)) {
        const struct send_wqe *work = send_queue_at(queue, queue->head);
        if (!direct_may(rc, work) || !direct_is_done(rc, work)) {
            rc->requester.packets_first = DIRECT_PACKETS_FIRST;
            return;
        }
        retire_head(queue, rc->owner, IBV_WC_SUCCESS, REASON_NONE);
    }
}

void rc_direct_begun(struct rc *rc, const struct send_wqe *work)
{
    struct requester *requester = &rc->requester;
    requester->packets_first -= requester->packets_first > 0;
    if (!rc_direct_is(work))
        requester->mixed_until = requester->queue.next + 1;
}
