#include "transport/rc/rc.h"

#include <string.h>

#include "base/likely.h"
#include "transport/rc/completer.h"
#include "transport/rc/receive.h"
#include "transport/rc/requester.h"
#include "transport/rc/responses.h"
#include "transport/request.h"
#include "transport/retire.h"
#include "wire/psn.h"

void rc_initialize(struct rc *rc, struct engine_owner *owner, const struct send_queue *queue,
                   struct responder_resource *saved)
{
    memset(rc, 0, sizeof(*rc));
    rc->owner = owner;
    rc->requester.queue = *queue;
    rc->requester.queue.head = rc->requester.queue.next = rc->requester.queue.tail = 0;
    rc->requester.deadline = rc->requester.watched = NANOS_NEVER;
    rto_start(&rc->requester.rto);
    rc->responder.open = MESSAGE_CLOSED;
    rc->responder.saved = saved;
}

void rc_reset(struct rc *rc)
{
    struct engine_settings settings = rc->settings;
    struct send_queue queue = rc->requester.queue;
    rc_initialize(rc, rc->owner, &queue, rc->responder.saved);
    rc->settings = settings;
}

void rc_start_receiving(struct rc *rc, uint32_t expected_psn)
{
    rc->responder.expected_psn = expected_psn & PSN_MASK;
    rc->responder.saved_most = rc->settings.max_dest_rd_atomic;
    rc->receiving = true;
}

void rc_start_transmitting(struct rc *rc, uint32_t first_psn)
{
    struct requester *requester = &rc->requester;
    requester->next_psn = requester->acked_psn = requester->sent_psn = first_psn & PSN_MASK;
    requester->retries_left = rc->settings.retry_count;
    requester->rnr_left = rc->settings.rnr_retry;
    congestion_start(&requester->congestion, rc->settings.first_window, rc->settings.window);
    rc->transmitting = true;
}

void rc_drain(struct rc *rc, bool draining)
{
    rc->requester.draining = draining;
    rc->requester.drained_reported = false;
    requester_drained(rc);
}

/* A long message asks for an ACK as often as the window needs one, so packets on their way may lack a request for an
 * ACK that another window needs. They are sent again. */
static void change_window(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    congestion_start(&requester->congestion, rc->settings.first_window, rc->settings.window);
    if (requester->sent_psn != requester->acked_psn && !requester->rnr_waiting)
        requester_rewind(rc);
}

/* A changed count begins anew. A changed time-out counts from the next start of the ACK timer on (rc_postpone). */
cold void rc_configure(struct rc *rc, const struct engine_settings *settings)
{
    const struct engine_settings before = rc->settings;
    rc->settings = *settings;
    if (!rc->transmitting || rc->failed)
        return;
    if (before.retry_count != settings->retry_count)
        rc->requester.retries_left = settings->retry_count;
    if (before.rnr_retry != settings->rnr_retry)
        rc->requester.rnr_left = settings->rnr_retry;
    if (before.window != settings->window || before.first_window != settings->first_window)
        change_window(rc);
}

/* Does nothing after an RNR NAK, as all is sent again anyway. */
cold void rc_reroute(struct rc *rc, nanos now)
{
    struct requester *requester = &rc->requester;
    if (!requester_has_begun(rc) || requester->rnr_waiting || rc->failed)
        return;
    requester_rewind(rc);
    requester->repeating = false;
    rto_start(&requester->rto);
    requester_wait(rc, requester_period(rc, now));
}

/* Begun work keeps its PSNs, since the peer may have taken some of it. The answer to a READ is cut by the peer. */
static bool may_move(const struct send_wqe *work, uint32_t segment, bool exact)
{
    if (work->by_reference)
        return false;
    return (work->packets == 1 && work->length <= segment) || (!exact && !request_awaits_response(work));
}

cold bool rc_may_move(const struct rc *rc, uint32_t segment, bool exact)
{
    const struct send_queue *queue = &rc->requester.queue;
    uint32_t at = queue->head;
    while (at != queue->tail && send_queue_at(queue, at)->started && may_move(send_queue_at(queue, at), segment, exact))
        at++;
    return at == queue->tail || !send_queue_at(queue, at)->started;
}

void rc_posted(struct rc *rc)
{
    if (rc->failed)
        retire_all(&rc->requester.queue, rc->owner);
}

void rc_receive(struct rc *rc, const struct packet *packet, nanos now)
{
    receive_packet(rc, packet, now);
}

/* Returns true if an ACK may be sent after a request. On a network packets leave in batches, and one request does not
 * delay the ACK. Not with settings.in_pieces: requests of a limited rate may be sent much later. */
static bool ack_may_wait(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return !responder->nak_due && responder->saved_next == responder->saved_tail && rc->settings.first_window &&
           !rc->settings.in_pieces;
}

bool rc_transmit(struct rc *rc, struct packet *out, struct iovec *pieces, nanos now)
{
    if (rc_owes_late(rc) && requester_ready(rc))
        responses_acknowledge_late(rc); /* the peer gets the ACK of its request before ours, which may answer it */
    bool due = responses_due(rc), waits = due && !rc->ack_waited && ack_may_wait(rc);
    rc->ack_waited = waits;
    if (due && !waits && responses_transmit(rc, out, pieces))
        return true;
    return requester_transmit(rc, out, pieces, now) || (waits && responses_transmit(rc, out, pieces));
}

bool rc_transmit_single(struct rc *rc, struct packet *out, struct iovec *pieces, nanos now)
{
    if (unlikely(responses_due(rc) || (rc_owes_late(rc) && !rc->settings.acks_along)))
        return false;
    rc->ack_waited = false;
    return requester_transmit_single(rc, out, pieces, now);
}

void rc_take_back_along(struct rc *rc, uint32_t along)
{
    if (along)
        responses_acknowledge(rc, along & PSN_MASK);
}

void rc_receive_along(struct rc *rc, uint32_t along, nanos now)
{
    if (along & RC_ALONG && !rc->failed)
        completer_receive_along(rc, along & PSN_MASK, now);
}

void rc_unreadable(struct rc *rc, const struct packet *packet)
{
    if (op_find(packet->opcode)->flags & OP_RESPONSE)
        responses_unreadable(rc, packet->psn);
    else
        requester_unreadable(rc, packet->psn);
}

bool rc_has_output(const struct rc *rc)
{
    return responses_due(rc) || requester_ready(rc);
}

bool rc_owes_but_an_ack(const struct rc *rc)
{
    return rc->responder.ack_due && ack_may_wait(rc) && !requester_ready(rc);
}

nanos rc_watch(struct rc *rc)
{
    rc->requester.watched = rc_deadline(rc);
    return rc->requester.watched;
}

void rc_expire(struct rc *rc, nanos now)
{
    struct requester *requester = &rc->requester;
    if (now < requester->deadline || requester->deadline == NANOS_NEVER) {
        requester_rto_expired(rc, now);
        return;
    }
    if (requester->rnr_waiting) {
        requester->rnr_waiting = false;
        requester->deadline = NANOS_NEVER; /* the ACK timer starts with the next packet */
        return;
    }
    requester->repeating = false;
    owner_note(rc->owner, EVENT_ACK_TIMEOUT, requester->acked_psn, requester->retries_left);
    requester_retransmit(rc, CONGESTION_SILENCE, now);
}

void rc_notified(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    congestion_met(&requester->congestion, CONGESTION_NOTIFIED, requester->acked_psn, requester->sent_psn);
}

cold void rc_postpone(struct rc *rc, nanos now)
{
    struct requester *requester = &rc->requester;
    bool waits = requester->deadline != NANOS_NEVER || requester->sent_psn != requester->acked_psn;
    if (requester->rnr_waiting || !waits || rc->failed)
        return;
    if (!rc->settings.timeout)
        rto_stop(&requester->rto);
    requester_wait(rc, requester_period(rc, now));
}
