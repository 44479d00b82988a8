#include "transport/rc/fail.h"

#include "base/nanos.h"
#include "transport/rc/acks.h"
#include "transport/retire.h"
#include "wire/foreign/foreign.h"

void fail_receive(struct rc *rc, enum ibv_wc_status status, enum reason reason, const struct packet *packet)
{
    const struct recv_wqe *receive = rc->responder.receive;
    if (!receive)
        return;
    const struct recv_cqe arrival = {
        .status = status,
        .reason = status == IBV_WC_WR_FLUSH_ERR ? REASON_FLUSHED : reason,
        .opcode = IBV_WC_RECV,
        .packet = packet,
    };
    rc->responder.receive = 0;
    rc->owner->operations->received(rc->owner, receive, &arrival);
}

/* Data that has arrived lands before the program gets its memory back. */
static void stop(struct rc *rc)
{
    foreign_settle();
    rc->failed = true;
    rc->requester.deadline = NANOS_NEVER;
    rto_stop(&rc->requester.rto);
    rc->requester.rnr_waiting = false;
    responses_acknowledge_late(rc);
}

void rc_flush(struct rc *rc)
{
    stop(rc);
    rc->responder.saved_next = rc->responder.saved_tail;
    retire_all(&rc->requester.queue, rc->owner);
    fail_receive(rc, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED, 0);
}

/* The receiver expects the PSNs of what has ended, so the owner connects anew before the rest begins. */
static void fail_stream(struct rc *rc, enum ibv_wc_status status, enum reason reason)
{
    struct requester *requester = &rc->requester;
    foreign_settle();
    retire_begun(&requester->queue, rc->owner, status, reason);
    requester->acked_psn = requester->sent_psn = requester->next_psn;
    requester->packet = requester->reads = 0;
    requester->rnr_waiting = requester->stalled = requester->probing = false;
    requester->repeating = requester->probed = requester->lost = requester->shipped = false;
    requester->retries_left = rc->settings.retry_count;
    requester->rnr_left = rc->settings.rnr_retry;
    requester->deadline = NANOS_NEVER;
    rto_stop(&requester->rto);
}

static bool is_contained(const struct rc *rc)
{
    const struct send_queue *queue = &rc->requester.queue;
    return rc->owner->operations->contains && queue->head != queue->tail &&
           rc->owner->operations->contains(rc->owner, send_queue_at(queue, queue->head));
}

void fail_requester(struct rc *rc, enum ibv_wc_status status, enum reason reason)
{
    if (is_contained(rc))
        return fail_stream(rc, status, reason);
    stop(rc);
    retire_failed(&rc->requester.queue, rc->owner, status, reason);
    fail_receive(rc, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED, 0);
    rc->owner->operations->failed(rc->owner, false);
}

void fail_responder(struct rc *rc, enum ibv_wc_status status, enum reason reason, const struct packet *packet)
{
    stop(rc);
    fail_receive(rc, status, reason, packet);
    retire_all(&rc->requester.queue, rc->owner);
    rc->owner->operations->failed(rc->owner, false);
}
