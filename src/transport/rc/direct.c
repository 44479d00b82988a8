#include "transport/rc/direct.h"

#include "transport/rc/responses.h"
#include "transport/request.h"
#include "transport/retire.h"

/* Returns false for work that is invalid or unusual: it is sent as packets. */
static bool direct_may(const struct rc *rc, const struct send_wqe *work)
{
    bool reads = work->opcode == IBV_WR_RDMA_READ;
    return rc_direct_goes(rc, work) && !work->started && work->length <= DIRECT_LENGTH_MAX &&
           work->length <= rc->settings.max_message && (!reads || rc->settings.max_rd_atomic);
}

static bool direct_is_open(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    return rc->transmitting && !rc->failed && !requester->draining && !requester->rnr_waiting && !requester->stalled;
}

static bool direct_has_place(const struct direct_works *these, const struct send_wqe *work)
{
    uint32_t pieces = work->flags & IBV_SEND_INLINE ? 1 : work->sge_count;
    return these->count < DIRECT_TOGETHER && these->piece_count + pieces <= PAYLOAD_PIECES_MAX &&
           work->length <= DIRECT_LENGTH_MAX - these->length;
}

static bool direct_add(struct rc *rc, struct direct_works *these, const struct send_wqe *work)
{
    uint32_t count;
    if (!direct_may(rc, work) || !direct_has_place(these, work) ||
        gather(rc->owner, work, request_local_access(work), 0, work->length, these->pieces + these->piece_count,
               &count))
        return false;
    these->works[these->count++] = work;
    these->piece_count += count;
    these->length += work->length;
    return true;
}

/* Collects the oldest work and, if it is a WRITE, later WRITEs, up to `most` altogether. */
static void direct_collect(struct rc *rc, struct direct_works *these, uint32_t most)
{
    const struct send_queue *queue = &rc->requester.queue;
    these->count = these->piece_count = these->length = 0;
    for (uint32_t at = queue->head; at != queue->tail && these->count < most; at++) {
        const struct send_wqe *work = send_queue_at(queue, at);
        if ((these->count && work->opcode != IBV_WR_RDMA_WRITE) || !direct_add(rc, these, work))
            return;
        if (work->opcode != IBV_WR_RDMA_WRITE)
            return;
    }
}

/* If the doer refuses several works, one of them may be wrong: then the oldest is tried alone. */
static inline bool direct_do_some(struct rc *rc, struct direct_works *these, direct_doer *doer)
{
    for (uint32_t most = DIRECT_TOGETHER; most; most = these->count > 1) {
        direct_collect(rc, these, most);
        if (these->count && doer(rc->owner, these))
            return true;
    }
    return false;
}

/* Lets the next works begin as packets: DIRECT_PACKETS_FIRST, or one if no packet was sent yet. A peer in RTR, for
 * example, publishes its queue pair only after the first packet: the work after that waits for the answer, and is tried
 * again. */
static void direct_put_off(struct rc *rc)
{
    rc->requester.packets_first = rc->requester.packets_begun ? DIRECT_PACKETS_FIRST : 1;
}

/* Lets no work wait for packets that were sent before the owner could do any work by itself. */
static void direct_begin_behind(struct requester *requester)
{
    if (requester->packets_begun || requester->queue.head == requester->queue.next)
        return;
    requester->packets_begun = true;
    requester->mixed_until = requester->queue.next;
}

/* Returns true if the oldest work is one for the owner, and no part of it was sent. */
static bool direct_is_due(const struct rc *rc)
{
    const struct send_queue *queue = &rc->requester.queue;
    const struct send_wqe *work = rc_direct_next(rc);
    return queue->head == queue->next && work && rc_direct_goes(rc, work) && !work->started;
}

/* A completion may make the owner fail the engine: then the engine has ended the other works, too. */
void rc_direct(struct rc *rc, direct_doer *doer)
{
    struct send_queue *queue = &rc->requester.queue;
    responses_acknowledge_late(rc); /* as before any other request */
    if (rc->requester.packets_first < DIRECT_NEAR)
        rc->requester.direct_lately = DIRECT_NEAR;
    direct_begin_behind(&rc->requester);
    struct direct_works these;
    while (direct_is_due(rc) && direct_is_open(rc)) {
        if (!direct_do_some(rc, &these, doer))
            return direct_put_off(rc);
        for (uint32_t done = 0; done < these.count && !rc->failed; done++)
            retire_head(queue, rc->owner, IBV_WC_SUCCESS, REASON_NONE);
    }
}

void rc_direct_begun(struct rc *rc, const struct send_wqe *work)
{
    struct requester *requester = &rc->requester;
    requester->packets_first -= requester->packets_first > 0;
    requester->direct_lately -= requester->direct_lately > 0;
    requester->packets_begun = true;
    bool unasked = work->opcode == IBV_WR_RDMA_WRITE && !requester->direct_lately; /* its ACK may be late */
    if (!rc_direct_is(work) || unasked)
        requester->mixed_until = requester->queue.next + 1;
}
