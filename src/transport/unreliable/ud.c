#include "transport/unreliable/ud.h"

#include <string.h>

#include "transport/bth.h"
#include "transport/pkey.h"
#include "transport/request.h"
#include "transport/retire.h"
#include "transport/scatter.h"
#include "wire/psn.h"

void ud_initialize(struct ud *ud, struct engine_owner *owner, const struct send_queue *queue)
{
    memset(ud, 0, sizeof(*ud));
    ud->owner = owner;
    ud->queue = *queue;
    ud->queue.head = ud->queue.next = ud->queue.tail = 0;
}

void ud_reset(struct ud *ud)
{
    struct ud old = *ud;
    ud_initialize(ud, old.owner, &old.queue);
    ud->pkey = old.pkey;
    ud->number = old.number;
    ud->qkey = old.qkey;
    ud->max_message = old.max_message;
}

void ud_start_receiving(struct ud *ud)
{
    ud->receiving = true;
}

void ud_start_transmitting(struct ud *ud, uint32_t first_psn)
{
    ud->next_psn = first_psn & PSN_MASK;
    ud->transmitting = true;
}

/* ---- requester ---- */

/* What was handed out before is on its way, so its memory is the program's again. */
static void settle(struct ud *ud)
{
    retire_transmitted(&ud->queue, ud->owner);
    if (!ud->draining || ud->drained_reported)
        return;
    ud->drained_reported = true;
    ud->owner->operations->event(ud->owner, IBV_EVENT_SQ_DRAINED);
}

void ud_drain(struct ud *ud, bool draining)
{
    ud->draining = draining;
    ud->drained_reported = false;
    settle(ud);
}

void ud_posted(struct ud *ud)
{
    if (!ud->failed && !ud->send_error)
        return;
    settle(ud);
    retire_all(&ud->queue, ud->owner);
}

static bool is_ready(const struct ud *ud)
{
    bool open = ud->transmitting && !ud->failed && !ud->send_error && !ud->draining;
    return open && ud->queue.next != ud->queue.tail;
}

bool ud_has_output(const struct ud *ud)
{
    return ud->queue.head != ud->queue.next || is_ready(ud);
}

const struct send_wqe *ud_next(struct ud *ud)
{
    settle(ud);
    return is_ready(ud) ? send_queue_at(&ud->queue, ud->queue.next) : 0;
}

static enum reason check_work(const struct ud *ud, const struct send_wqe *work)
{
    const struct request_kind *kind = request_kind(work);
    if (kind->class != REQUEST_SEND || !op_find(op_code(SERVICE_UD, kind->only)))
        return REASON_WORK_UNSUPPORTED;
    return work->length > ud->max_message ? REASON_MESSAGE_TOO_LONG : REASON_NONE;
}

/* A Q_Key with the high bit set in the work request means the queue pair's own (IBA 10.2.5, C10-15). */
static uint32_t choose_qkey(const struct ud *ud, const struct send_wqe *work)
{
    const uint32_t controlled = 0x80000000;
    return work->remote_qkey & controlled ? ud->qkey : work->remote_qkey;
}

static enum reason build(const struct ud *ud, const struct send_wqe *work, struct packet *out, struct iovec *pieces)
{
    enum reason reason = check_work(ud, work);
    if (reason)
        return reason;
    bth_fill(out, op_code(SERVICE_UD, request_kind(work)->only), ud->pkey, work->remote_qp, ud->next_psn);
    request_operands(out, work);
    out->solicited = work->flags & IBV_SEND_SOLICITED;
    out->source = ud->number;
    out->qkey = choose_qkey(ud, work);
    return request_payload(ud->owner, work, 0, work->length, out, pieces);
}

/* SQE: the send side alone goes to error (IBA 10.3.1 "Send Queue Error"). */
static void refuse_work(struct ud *ud, enum reason reason)
{
    ud->send_error = true;
    retire_failed(&ud->queue, ud->owner, request_status(reason), reason);
    ud->owner->operations->failed(ud->owner, true);
}

bool ud_transmit(struct ud *ud, struct packet *out, struct iovec *pieces)
{
    const struct send_wqe *work = ud_next(ud);
    if (!work)
        return false;
    enum reason reason = build(ud, work, out, pieces);
    if (reason) {
        refuse_work(ud, reason);
        return false;
    }
    ud->next_psn = psn_add(ud->next_psn, 1);
    ud->queue.next++;
    return true;
}

/* What lay before it has ended when it was built. */
void ud_unreadable(struct ud *ud)
{
    ud->queue.next = ud->queue.head;
    refuse_work(ud, REASON_LOCAL_GONE);
}

/* ---- responder ---- */

void ud_flush(struct ud *ud)
{
    ud->failed = true;
    retire_transmitted(&ud->queue, ud->owner);
    retire_all(&ud->queue, ud->owner);
}

/* IBA 9.8.3.1: what a datagram must be before a receive is spent on it. */
static enum reason ud_check(const struct ud *ud, const struct packet *packet)
{
    if (!op_find(packet->opcode))
        return REASON_PACKET_OPCODE;
    if (op_service(packet->opcode) != SERVICE_UD)
        return REASON_PACKET_SERVICE;
    if (!ud->receiving || ud->failed)
        return REASON_PACKET_QP_STATE;
    if (!pkey_matches(packet->pkey, ud->pkey))
        return REASON_PACKET_PKEY;
    if (packet->qkey != ud->qkey)
        return REASON_PACKET_QKEY;
    return packet->payload.length > ud->max_message ? REASON_PACKET_TOO_LONG : REASON_NONE;
}

/* One that is too short for the datagram is left for the next, whichever queue pair that comes to. */
static enum reason ud_take_receive(struct ud *ud, const struct packet *packet, const struct recv_wqe **receive)
{
    uint64_t least = UD_GRH_LENGTH + (uint64_t)packet->payload.length;
    *receive = ud->owner->operations->take_receive(ud->owner, packet, least);
    if (!*receive)
        return REASON_PACKET_NO_RECEIVE;
    return *receive == &receive_too_short ? REASON_PACKET_TOO_LONG : REASON_NONE;
}

static enum reason ud_store(struct ud *ud, const struct recv_wqe *receive, const struct packet *packet)
{
    static const uint8_t unknown[UD_GRH_LENGTH];
    struct iovec piece = {(void *)(packet->grh ? packet->grh : unknown), UD_GRH_LENGTH};
    struct payload grh = {.length = UD_GRH_LENGTH, .count = 1, .pieces = &piece};
    enum reason reason = scatter(ud->owner, receive, 0, &grh);
    return reason ? reason : scatter(ud->owner, receive, UD_GRH_LENGTH, &packet->payload);
}

static void ud_accept(struct ud *ud, const struct recv_wqe *receive, const struct packet *packet)
{
    bool immediate = op_find(packet->opcode)->flags & OP_IMMDT;
    const struct recv_cqe arrival = {
        .status = IBV_WC_SUCCESS,
        .opcode = IBV_WC_RECV,
        .length = UD_GRH_LENGTH + packet->payload.length,
        .flags = (immediate ? IBV_WC_WITH_IMM : 0) | (packet->grh ? IBV_WC_GRH : 0),
        .immediate_or_key = immediate ? packet->immediate : 0,
        .solicited = packet->solicited,
        .source = packet->source,
        .packet = packet,
    };
    ud->owner->operations->received(ud->owner, receive, &arrival);
}

static void fail_receive(struct ud *ud, const struct recv_wqe *receive, enum reason reason, const struct packet *packet)
{
    const struct recv_cqe arrival = {
        .status = IBV_WC_LOC_PROT_ERR, .reason = reason, .opcode = IBV_WC_RECV, .packet = packet};
    ud->owner->operations->received(ud->owner, receive, &arrival);
    ud_flush(ud);
    ud->owner->operations->failed(ud->owner, false);
}

void ud_receive(struct ud *ud, const struct packet *packet)
{
    const struct recv_wqe *receive;
    enum reason reason = ud_check(ud, packet);
    if (!reason)
        reason = ud_take_receive(ud, packet, &receive);
    if (reason) {
        ud->owner->operations->dropped(ud->owner, packet, reason);
        return;
    }
    reason = ud_store(ud, receive, packet);
    if (reason == REASON_PACKET_PULL) {
        ud->owner->operations->return_receive(ud->owner, receive);
        ud->owner->operations->dropped(ud->owner, packet, reason);
    } else if (reason) {
        fail_receive(ud, receive, reason, packet);
    } else {
        ud_accept(ud, receive, packet);
    }
}
