#include "transport/rc/completer.h"

#include "base/likely.h"
#include "base/time_scale.h"
#include "transport/gather.h"
#include "transport/rc/fail.h"
#include "transport/rc/requester.h"
#include "transport/request.h"
#include "wire/foreign/foreign.h"
#include "wire/psn.h"

/* Returns true if the packet is about a request that was sent and has not been acknowledged (IBA 9.7.6.1: ghost ACKs
 * are dropped). */
static bool is_outstanding(const struct rc *rc, uint32_t psn)
{
    const struct requester *requester = &rc->requester;
    return psn_distance(psn, requester->acked_psn) >= 0 && psn_distance(psn, requester->sent_psn) < 0;
}

/* Retires the work before psn. False: it stopped at a READ or an atomic, which needs a separate answer. */
static bool retire_before(struct rc *rc, uint32_t psn)
{
    struct requester *requester = &rc->requester;
    while (psn_distance(psn, requester->acked_psn) > 0) {
        const struct send_wqe *work = requester_oldest(rc);
        if (request_awaits_response(work))
            return false;
        uint32_t behind = psn_add(work->first_psn, work->packets);
        if (psn_distance(psn, behind) < 0) {
            requester->acked_psn = psn;
            return true;
        }
        requester->acked_psn = behind;
        requester_retire(rc);
    }
    return true;
}

cold static void response_is_missing(struct rc *rc, nanos now)
{
    if (rc->requester.repeating || rc->requester.rnr_waiting)
        return;
    requester_retransmit(rc, CONGESTION_GAP, now);
    rc->requester.repeating = true;
}

/* Notes that the peer has taken all packets before psn (IBA 9.7.6: each response acknowledges those before it). False:
 * an earlier answer was lost, and is requested again. */
static bool acknowledge_before(struct rc *rc, uint32_t psn, nanos now)
{
    uint32_t acked = rc->requester.acked_psn;
    bool whole = retire_before(rc, psn);
    if (rc->requester.acked_psn != acked) {
        congestion_acknowledged(&rc->requester.congestion, psn_add(rc->requester.acked_psn, -acked),
                                rc->requester.acked_psn);
        requester_progressed(rc, now);
    }
    if (!whole)
        response_is_missing(rc, now);
    return whole;
}

cold static void refuse_response(struct rc *rc, const struct packet *packet)
{
    rc->owner->operations->dropped(rc->owner, packet, REASON_BAD_RESPONSE);
    fail_requester(rc, IBV_WC_BAD_RESP_ERR, REASON_BAD_RESPONSE);
}

cold static void receive_rnr(struct rc *rc, const struct packet *packet, nanos now)
{
    struct requester *requester = &rc->requester;
    if (requester->rnr_waiting)
        return;
    if (rc_ends_by_rnr(rc)) {
        fail_requester(rc, IBV_WC_RNR_RETRY_EXC_ERR, REASON_RNR_EXCEEDED);
        return;
    }
    requester->rnr_left -= requester->rnr_left > 0;
    requester->retries_left = rc->settings.retry_count; /* the peer lives */
    requester_rewind(rc);
    requester->rnr_waiting = true;
    rto_stop(&requester->rto);
    requester_wait(rc, now + time_scaled(rnr_wait(packet->syndrome)));
}

cold static void receive_nak(struct rc *rc, const struct packet *packet, nanos now)
{
    switch (packet->syndrome & 0x7f) {
    case SYNDROME_NAK_SEQUENCE:
        if (!rc->requester.rnr_waiting && !requester_lose_references(rc, now))
            requester_retransmit(rc, CONGESTION_GAP, now);
        return;
    case SYNDROME_NAK_INVALID_REQUEST:
        fail_requester(rc, IBV_WC_REM_INV_REQ_ERR, REASON_REMOTE_INVALID_REQUEST);
        return;
    case SYNDROME_NAK_REMOTE_ACCESS:
        fail_requester(rc, IBV_WC_REM_ACCESS_ERR, REASON_REMOTE_ACCESS);
        return;
    case SYNDROME_NAK_REMOTE_OPERATION:
        fail_requester(rc, IBV_WC_REM_OP_ERR, REASON_REMOTE_OPERATION);
        return;
    default:
        refuse_response(rc, packet);
    }
}

cold static void receive_refusal(struct rc *rc, const struct packet *packet, nanos now)
{
    enum syndrome_class class = syndrome_class(packet->syndrome);
    if (class == SYNDROME_CLASS_RESERVED)
        refuse_response(rc, packet);
    else if (!acknowledge_before(rc, packet->psn, now))
        return;
    else if (class == SYNDROME_CLASS_RNR)
        receive_rnr(rc, packet, now);
    else
        receive_nak(rc, packet, now);
}

static inline void receive_acknowledge(struct rc *rc, const struct packet *packet, nanos now)
{
    if (likely(syndrome_class(packet->syndrome) == SYNDROME_CLASS_ACK))
        acknowledge_before(rc, psn_add(packet->psn, 1), now);
    else
        receive_refusal(rc, packet, now);
}

/* Finds the memory for these bytes of the answer. */
static enum reason find_place(struct rc *rc, uint32_t offset, uint32_t length, struct iovec *pieces, uint32_t *count)
{
    const struct send_wqe *work = requester_oldest(rc);
    if (work->flags & WORK_INTO_RECEIVE)
        return gather_list(rc->owner, true, work->sge, work->sge_count, IBV_ACCESS_LOCAL_WRITE, offset, length, pieces,
                           count);
    return gather(rc->owner, work, IBV_ACCESS_LOCAL_WRITE, offset, length, pieces, count);
}

/* Stores an answer's bytes. False: that was not possible, and the work must not proceed. */
static bool completer_store(struct rc *rc, uint32_t offset, const struct payload *payload, nanos now)
{
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint32_t count;
    enum reason reason = find_place(rc, offset, payload->length, pieces, &count);
    if (reason) {
        fail_requester(rc, reason == REASON_LOCAL_LENGTH ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR, reason);
        return false;
    }
    if (!payload->length || payload_copy(payload, 0, pieces, count))
        return true;
    if (payload_can_land(pieces, count))
        requester_retransmit(rc, CONGESTION_GAP, now);
    else
        fail_requester(rc, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
    return false;
}

/* Stores bytes of a READ. Fails the work if bytes of it were lost after they had been accepted, which is known at the
 * last packet at the latest. */
static bool completer_store_response(struct rc *rc, uint32_t index, const struct payload *payload, nanos now)
{
    const struct send_wqe *work = requester_oldest(rc);
    bool last = index + 1 == work->packets;
    foreign_gather(&rc->requester.lost, last);
    bool stored = completer_store(rc, index * work->segment, payload, now);
    foreign_gather(NULL, false);
    if (last)
        foreign_settle_message(&rc->requester.lost);
    if (!rc->requester.lost || rc->failed)
        return stored;
    fail_requester(rc, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
    return false;
}

/* Takes one more packet of the oldest work's answer. */
static void proceed(struct rc *rc, nanos now)
{
    struct requester *requester = &rc->requester;
    const struct send_wqe *work = requester_oldest(rc);
    requester->acked_psn = psn_add(requester->acked_psn, 1);
    congestion_acknowledged(&requester->congestion, 1, requester->acked_psn);
    if (requester->acked_psn == psn_add(work->first_psn, work->packets))
        requester_retire(rc);
    requester_progressed(rc, now);
}

/* Does not distinguish FIRST from MIDDLE: after a repeat, packets of both answers may arrive. The PSN gives the place
 * in the message, and the packet's end and length must agree with it. */
static bool read_response_fits(const struct send_wqe *work, uint32_t index, const struct packet *packet)
{
    uint32_t left = work->length - index * work->segment;
    bool last = index + 1 == work->packets;
    bool ends = op_find(packet->opcode)->flags & OP_END;
    bool is_end = index + 1 == request_stride_end(work, index);
    if (op_operation(packet->opcode) != OPERATION_READ_RESPONSE_MIDDLE &&
        syndrome_class(packet->syndrome) != SYNDROME_CLASS_ACK)
        return false;
    return ends == is_end && packet->payload.length == (last ? left : work->segment);
}

cold static void receive_read_response(struct rc *rc, const struct packet *packet, nanos now)
{
    const struct send_wqe *work = requester_oldest(rc);
    bool empty = work->opcode == IBV_WR_ATOMIC_WRITE || work->opcode == NEWER_WR_FLUSH;
    if (empty && op_operation(packet->opcode) == OPERATION_READ_RESPONSE_ONLY) {
        proceed(rc, now);
        return;
    }
    uint32_t index = psn_add(packet->psn, -work->first_psn);
    if (work->opcode != IBV_WR_RDMA_READ || !read_response_fits(work, index, packet))
        refuse_response(rc, packet);
    else if (completer_store_response(rc, index, &packet->payload, now))
        proceed(rc, now);
}

cold static void receive_atomic_response(struct rc *rc, const struct packet *packet, nanos now)
{
    uint8_t opcode = requester_oldest(rc)->opcode;
    bool asked = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (!asked || syndrome_class(packet->syndrome) != SYNDROME_CLASS_ACK) {
        refuse_response(rc, packet);
        return;
    }
    uint64_t original = packet->original;
    struct iovec piece = {&original, sizeof(original)};
    struct payload payload = {.length = sizeof(original), .count = 1, .pieces = &piece};
    if (completer_store(rc, 0, &payload, now))
        proceed(rc, now);
}

/* A separate function, as the usual response is an ACK. */
cold static void receive_response(struct rc *rc, const struct packet *packet, nanos now)
{
    if (!acknowledge_before(rc, packet->psn, now))
        return;
    if (op_operation(packet->opcode) == OPERATION_ATOMIC_ACKNOWLEDGE)
        receive_atomic_response(rc, packet, now);
    else
        receive_read_response(rc, packet, now);
}

void completer_receive_along(struct rc *rc, uint32_t psn, nanos now)
{
    if (rc->transmitting && is_outstanding(rc, psn))
        acknowledge_before(rc, psn_add(psn, 1), now);
}

void completer_receive(struct rc *rc, const struct packet *packet, nanos now)
{
    enum operation operation = op_operation(packet->opcode);
    if (!rc->transmitting || !is_outstanding(rc, packet->psn)) {
        rc->owner->operations->dropped(rc->owner, packet, REASON_PACKET_STALE_RESPONSE);
        return;
    }
    if (operation == OPERATION_ACKNOWLEDGE) {
        receive_acknowledge(rc, packet, now);
        return;
    }
    receive_response(rc, packet, now);
}

/* Returns true if this work was sent, as one packet that asked for no ACK. */
static bool is_unasked(const struct rc *rc, const struct send_wqe *work)
{
    return work->started && work->packets == 1 && !work->by_reference && !request_awaits_response(work) &&
           !(work->flags & IBV_SEND_SIGNALED) && work->first_psn & rc->settings.ack_mask;
}

bool completer_presume(struct rc *rc, nanos now)
{
    const struct requester *requester = &rc->requester;
    const struct send_queue *queue = &requester->queue;
    bool retransmits = queue->next != queue->tail && send_queue_at(queue, queue->next)->started;
    if (requester->rnr_waiting || requester->stalled || retransmits || queue->head == queue->next)
        return false;
    for (uint32_t at = queue->head; at != queue->next; at++)
        if (!is_unasked(rc, send_queue_at(queue, at)))
            return false;
    return acknowledge_before(rc, requester->sent_psn, now);
}
