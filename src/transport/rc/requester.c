#include "transport/rc/requester.h"
#include "base/likely.h"
#include "base/time_scale.h"
#include "transport/rc/direct.h"

#include "transport/rc/fail.h"
#include "transport/rc/rc_request.h"
#include "transport/retire.h"
#include "wire/psn.h"

static bool is_begun(const struct send_queue *queue)
{
    return queue->head != queue->tail && send_queue_at(queue, queue->head)->started;
}

bool requester_has_begun(const struct rc *rc)
{
    return is_begun(&rc->requester.queue);
}

/* A function that may have made a deadline sooner calls this in the end, to report it to the owner. */
static void announce(struct rc *rc)
{
    nanos deadline = rc_deadline(rc);
    if (deadline >= rc->requester.watched)
        return;
    rc->requester.watched = deadline;
    rc->owner->operations->watch(rc->owner, deadline);
}

void requester_wait(struct rc *rc, nanos deadline)
{
    rc->requester.deadline = deadline;
    announce(rc);
}

/* The value of the ACK timer; 0: the timer never expires, and work is not repeated early either. */
static nanos timer_value(const struct rc *rc)
{
    return rc->settings.timeout ? time_scaled(4096ull << (rc->settings.timeout & 31)) : 0;
}

/* The timer may run for up to four times its value (IBA 9.7.6.1.3). On a network each of the first two silences doubles
 * the period: a peer that is only slow answers then, and repeats would make it slower. */
nanos requester_period(const struct rc *rc, nanos now)
{
    unsigned silences = rc->settings.retry_count - rc->requester.retries_left;
    unsigned doublings = !rc->settings.first_window ? 0 : silences < 2 ? silences : 2;
    nanos period = timer_value(rc);
    return period ? now + (period << doublings) : NANOS_NEVER;
}

void requester_drained(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    if (!requester->draining || requester->drained_reported || is_begun(&requester->queue))
        return;
    requester->drained_reported = true;
    rc->owner->operations->event(rc->owner, IBV_EVENT_SQ_DRAINED);
}

void requester_retire(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    requester->reads -= request_awaits_response(requester_oldest(rc));
    if (requester->queue.next == requester->queue.head)
        requester->packet = 0;
    retire_head(&requester->queue, rc->owner, IBV_WC_SUCCESS, REASON_NONE);
    requester_drained(rc);
}

/* The number of packets of the oldest work that need no repeating. */
static uint32_t acknowledged_packets(const struct rc *rc)
{
    return is_begun(&rc->requester.queue) ? psn_add(rc->requester.acked_psn, -requester_oldest(rc)->first_psn) : 0;
}

/* A packet that was acknowledged while it waited to be sent again needs no repeating. */
static void skip_acknowledged(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    if (requester->queue.next != requester->queue.head)
        return;
    uint32_t done = acknowledged_packets(rc);
    if (requester->packet < done)
        requester->packet = done;
}

/* A probe that is acknowledged alone filled a hole: the packets after it were lost, too. If all had arrived, the
 * answer to the probe would have acknowledged them (IBA 9.7.5.1.2 answers a duplicate with the latest PSN). */
static void judge_probe(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    bool hole = requester->probed && requester->acked_psn == psn_add(requester->probed_psn, 1) &&
                requester->acked_psn != requester->sent_psn;
    requester->probing = requester->probed = false;
    if (!hole)
        return;
    congestion_met(&requester->congestion, CONGESTION_GAP, requester->acked_psn, requester->sent_psn);
    requester_rewind(rc);
}

void requester_progressed(struct rc *rc, nanos now)
{
    struct requester *requester = &rc->requester;
    judge_probe(rc);
    requester->retries_left = rc->settings.retry_count;
    requester->rnr_left = rc->settings.rnr_retry;
    requester->repeating = requester->stalled = false;
    skip_acknowledged(rc);
    bool waiting = requester->acked_psn != requester->sent_psn;
    if (requester->rnr_waiting)
        return;
    requester->deadline = waiting ? requester_period(rc, now) : NANOS_NEVER;
    if (rc->settings.first_window)
        rto_acknowledged(&requester->rto, requester->acked_psn, waiting, timer_value(rc), now);
    announce(rc);
}

void requester_rewind(struct rc *rc)
{
    rc->requester.queue.next = rc->requester.queue.head;
    rc->requester.packet = acknowledged_packets(rc);
    rc->requester.stalled = rc->requester.probing = rc->requester.probed = false;
}

/* Cuts the work into packets as if it had been cut so at first: its acknowledged part takes up the PSNs before
 * acked_psn. */
static void cut_anew(struct rc *rc, struct send_wqe *work)
{
    uint32_t done = acknowledged_packets(rc) * (work->segment / rc->settings.segment);
    work->segment = rc->settings.segment;
    work->by_reference = false;
    work->packets = work->stride = request_packets(work->length, work->segment);
    work->first_psn = psn_add(rc->requester.acked_psn, -done);
}

/* Lets the work after the oldest one begin anew with other PSNs, as the oldest needs more of them. This is safe: a link
 * with references keeps the order, so the peer has dropped the old packets, or will, before it gets the new ones. */
static void begin_behind_anew(struct rc *rc)
{
    struct requester *requester = &rc->requester;
    const struct send_queue *queue = &requester->queue;
    const struct send_wqe *first = requester_oldest(rc);
    for (uint32_t at = queue->head + 1; at != queue->tail; at++) {
        struct send_wqe *work = send_queue_at(queue, at);
        requester->reads -= work->started && request_awaits_response(work);
        work->started = work->by_reference = false;
    }
    requester->sent_psn = requester->acked_psn;
    requester->next_psn = psn_add(first->first_psn, first->packets);
}

/* Returns true if some begun work is sent by reference, so that the peer fetches the payload. */
static bool has_references(const struct send_queue *queue)
{
    uint32_t at = queue->head;
    while (at != queue->tail && send_queue_at(queue, at)->started && !send_queue_at(queue, at)->by_reference)
        at++;
    return at != queue->tail && send_queue_at(queue, at)->by_reference;
}

bool requester_lose_references(struct rc *rc, nanos now)
{
    if (!rc->settings.references_lost)
        return false;
    rc->settings.reference_segment = 0;
    if (!has_references(&rc->requester.queue))
        return false;
    if (requester_oldest(rc)->by_reference)
        cut_anew(rc, requester_oldest(rc));
    begin_behind_anew(rc);
    requester_rewind(rc);
    requester_wait(rc, requester_period(rc, now));
    return true;
}

/* Returns true if the memory of the oldest work, which is sent by reference, is gone. */
static bool is_oldest_gone(const struct rc *rc)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    return is_begun(&rc->requester.queue) && !request_awaits_response(requester_oldest(rc)) &&
           !rc_request_build(rc, requester_oldest(rc), acknowledged_packets(rc), &packet, pieces) &&
           packet.payload.by_reference && !payload_is_there(&packet.payload);
}

static void give_up(struct rc *rc)
{
    if (is_oldest_gone(rc))
        fail_requester(rc, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
    else
        fail_requester(rc, IBV_WC_RETRY_EXC_ERR, rc->settings.silence ? rc->settings.silence : REASON_RETRY_EXCEEDED);
}

void requester_retransmit(struct rc *rc, enum congestion_sign sign, nanos now)
{
    congestion_met(&rc->requester.congestion, sign, rc->requester.acked_psn, rc->requester.sent_psn);
    if (!rc->requester.retries_left) {
        give_up(rc);
        return;
    }
    rc->requester.retries_left--;
    requester_rewind(rc);
    rc->requester.deadline = requester_period(rc, now);
    if (rc->settings.first_window)
        rto_retransmitted(&rc->requester.rto, false, timer_value(rc), now);
    announce(rc);
}

/* Returns true if the oldest unacknowledged packet was sent and does not wait to be sent again, and its repeat would
 * show what has arrived. The answer to a READ or an atomic would only acknowledge itself. */
static bool may_probe(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    const struct send_queue *queue = &requester->queue;
    return is_begun(queue) && !request_awaits_response(requester_oldest(rc)) &&
           (queue->next != queue->head || requester->packet > acknowledged_packets(rc));
}

/* Repeats one packet: a silent peer may be slow, without any loss, and sending all again would make it slower. */
void requester_rto_expired(struct rc *rc, nanos now)
{
    struct requester *requester = &rc->requester;
    if (now < requester->rto.deadline || requester->rnr_waiting || rc->failed)
        return;
    if (may_probe(rc)) {
        requester->probing = true;
    } else {
        congestion_met(&requester->congestion, CONGESTION_GAP, requester->acked_psn, requester->sent_psn);
        requester->repeating = false;
        requester_rewind(rc);
    }
    rto_retransmitted(&requester->rto, true, timer_value(rc), now);
    announce(rc);
}

/* Returns true if work that has no PSN yet may be begun now. max_rd_atomic throttles READs and atomics; if it is 0,
 * they begin and end with an error. Local work waits for all work before it, as it may take away memory that a repeat
 * of that needs. */
static bool may_begin(const struct rc *rc, struct send_wqe *work)
{
    const struct requester *requester = &rc->requester;
    enum request_class class = request_kind(work)->class;
    if (requester->draining)
        return false;
    if (unlikely(rc->settings.direct) && rc_direct_holds(rc, work))
        return false;
    if (class == REQUEST_LOCAL)
        return requester->queue.next == requester->queue.head;
    if (work->flags & WORK_ADDRESSED && !rc->owner->operations->reaches(rc->owner, work))
        return false;
    if (work->flags & IBV_SEND_FENCE && requester->reads)
        return false;
    return class < REQUEST_READ || !rc->settings.max_rd_atomic || requester->reads < rc->settings.max_rd_atomic;
}

/* A long READ asks for one stride at a time: that takes up one of the responder's resources, and no more packets on the
 * network than the window was when the READ began. */
static bool is_window_open(const struct rc *rc, const struct send_wqe *work)
{
    const struct requester *requester = &rc->requester;
    uint32_t psn = work->started ? psn_add(work->first_psn, requester->packet) : requester->next_psn;
    if (psn == requester->acked_psn)
        return true;
    bool goes_on = work->started && requester->packet && request_awaits_response(work);
    return !goes_on && psn_add(psn, -requester->acked_psn) < requester->congestion.window;
}

bool requester_ready(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    if (!rc->transmitting || rc->failed)
        return false;
    if (unlikely(requester->unusual) && (requester->probing || requester->rnr_waiting || requester->stalled))
        return requester->probing;
    if (requester->queue.next == requester->queue.tail)
        return false;
    struct send_wqe *work = send_queue_at(&requester->queue, requester->queue.next);
    return (work->started || may_begin(rc, work)) && is_window_open(rc, work);
}

static void requester_begin(struct rc *rc, struct send_wqe *work)
{
    rc_request_measure(rc, work);
    work->first_psn = rc->requester.next_psn;
    work->started = true;
    rc->requester.next_psn = psn_add(work->first_psn, work->packets);
    rc->requester.packet = 0;
    rc->requester.reads += request_awaits_response(work);
    rc->requester.shipped |= work->by_reference;
    if (unlikely(rc->settings.direct))
        rc_direct_begun(rc, work);
}

/* Before a repeat the requester must look whether the bytes are there: a receiver that can't fetch them only asks
 * again. */
static bool is_retransmitted_reference(const struct rc *rc, const struct packet *packet)
{
    return packet->payload.by_reference && psn_distance(packet->psn, rc->requester.sent_psn) < 0;
}

/* Begins the work when it is new, and writes its next packet. */
static enum reason requester_prepare(struct rc *rc, struct send_wqe *work, struct packet *out, struct iovec *pieces)
{
    enum reason reason = work->started ? REASON_NONE : rc_request_check(rc, work);
    if (reason)
        return reason;
    if (!work->started)
        requester_begin(rc, work);
    reason = rc_request_build(rc, work, rc->requester.packet, out, pieces);
    return !reason && is_retransmitted_reference(rc, out) && !payload_is_there(&out->payload) ? REASON_LOCAL_GONE
                                                                                              : reason;
}

/* Work ends in the order of posting, so the error waits until everything before it has ended. */
static void requester_refuse(struct rc *rc, enum reason reason)
{
    if (rc->requester.queue.next == rc->requester.queue.head)
        fail_requester(rc, request_status(reason), reason);
    else
        rc->requester.stalled = true;
}

void requester_unreadable(struct rc *rc, uint32_t psn)
{
    struct send_queue *queue = &rc->requester.queue;
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        const struct send_wqe *work = send_queue_at(queue, at);
        if (!work->started || psn_add(psn, -work->first_psn) >= work->packets)
            continue;
        queue->next = at;
        rc->requester.packet = psn_add(psn, -work->first_psn);
        requester_refuse(rc, REASON_LOCAL_GONE);
        return;
    }
}

/* Notes that the packet before this PSN was sent; `anew`: for the first time. */
static inline void requester_sent(struct rc *rc, uint32_t behind, bool anew, nanos now)
{
    struct requester *requester = &rc->requester;
    if (likely(requester->deadline != NANOS_NEVER && !rc->settings.first_window))
        return; /* no deadline has become sooner */
    if (requester->deadline == NANOS_NEVER)
        requester->deadline = requester_period(rc, now);
    if (rc->settings.first_window)
        rto_sent(&requester->rto, psn_add(behind, -1), anew, timer_value(rc), now);
    announce(rc);
}

static void advance(struct rc *rc, const struct send_wqe *work, nanos now)
{
    struct requester *requester = &rc->requester;
    uint32_t packets = requester->packet + 1;
    if (request_awaits_response(work))
        packets = request_stride_end(work, requester->packet);
    uint32_t behind = psn_add(work->first_psn, packets);
    requester->packet = packets;
    if (packets == work->packets) {
        requester->queue.next++;
        requester->packet = 0;
    }
    bool anew = psn_distance(behind, requester->sent_psn) > 0;
    if (anew)
        requester->sent_psn = behind;
    requester_sent(rc, behind, anew, now);
}

static void execute_locally(struct rc *rc, const struct send_wqe *work)
{
    enum reason reason = REASON_NONE;
    enum ibv_wc_status status = rc->owner->operations->local_operation(rc->owner, work, &reason);
    if (status == IBV_WC_SUCCESS)
        requester_retire(rc);
    else
        fail_requester(rc, status, reason);
}

/* Writes the oldest packet as a probe. If it can't be built, all is sent again, which finds out why. */
static bool probe(struct rc *rc, struct packet *out, struct iovec *pieces)
{
    struct requester *requester = &rc->requester;
    requester->probing = false;
    if (!may_probe(rc))
        return false;
    if (rc_request_build(rc, requester_oldest(rc), acknowledged_packets(rc), out, pieces)) {
        requester_rewind(rc);
        return false;
    }
    out->ack_requested = requester->probed = true;
    requester->probed_psn = requester->acked_psn;
    return true;
}

cold static bool requester_transmit_slow(struct rc *rc, struct packet *out, struct iovec *pieces, nanos now)
{
    struct requester *requester = &rc->requester;
    if (requester->probing && requester_ready(rc) && probe(rc, out, pieces))
        return true;
    while (requester_ready(rc)) {
        struct send_wqe *work = send_queue_at(&requester->queue, requester->queue.next);
        if (request_kind(work)->class == REQUEST_LOCAL) {
            execute_locally(rc, work);
            continue;
        }
        enum reason reason = requester_prepare(rc, work, out, pieces);
        if (reason) {
            requester_refuse(rc, reason);
            continue;
        }
        advance(rc, work, now);
        return true;
    }
    return false;
}

/* A separate function, so that a queue pair whose owner does no work by itself saves no registers for the call. */
cold static bool is_the_owners(const struct rc *rc, const struct send_wqe *work)
{
    return rc_direct_goes(rc, work);
}

/* Returns true if the next work may leave now, and is a message of one packet that never left before. Only for a
 * packet's own bytes: references, fences, and unusual work take the long way. */
static inline bool is_single_ready(const struct rc *rc, const struct send_wqe *work)
{
    const struct engine_settings *settings = &rc->settings;
    const struct requester *requester = &rc->requester;
    enum request_class class = request_kind(work)->class;
    bool fits = work->length <= settings->segment && work->length <= settings->max_message &&
                !(settings->reference_segment && work->length >= settings->reference_from);
    return (class == REQUEST_SEND || class == REQUEST_WRITE) && !work->started && fits &&
           !(work->flags & (IBV_SEND_FENCE | WORK_ADDRESSED)) &&
           !(unlikely(settings->direct) && is_the_owners(rc, work)) &&
           psn_add(requester->next_psn, -requester->acked_psn) < requester->congestion.window;
}

/* The short way of such work. It makes the same packet as rc_request_build, which makes the repeats. */
bool requester_transmit_single(struct rc *rc, struct packet *out, struct iovec *pieces, nanos now)
{
    struct requester *requester = &rc->requester;
    struct send_queue *queue = &requester->queue;
    if (!rc->transmitting || rc->failed || requester->unusual || queue->next == queue->tail)
        return false;
    struct send_wqe *work = send_queue_at(queue, queue->next);
    if (!is_single_ready(rc, work) || rc_request_load_single(rc, work, out, pieces))
        return false;
    rc_request_measure_single(rc, work);
    work->first_psn = requester->next_psn;
    work->started = true;
    requester->next_psn = requester->sent_psn = psn_add(work->first_psn, 1);
    requester->packet = 0;
    if (rc->settings.direct)
        rc_direct_begun(rc, work);
    queue->next++;
    requester_sent(rc, requester->sent_psn, true, now);
    rc_request_build_single(rc, work, out);
    return true;
}

bool requester_transmit(struct rc *rc, struct packet *out, struct iovec *pieces, nanos now)
{
    return likely(requester_transmit_single(rc, out, pieces, now)) || requester_transmit_slow(rc, out, pieces, now);
}
