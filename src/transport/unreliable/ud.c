#include "transport/unreliable/ud.h"

#include "base/container.h"
#include "transport/bth.h"
#include "transport/request.h"
#include "transport/scatter.h"
#include "wire/psn.h"

static struct ud *ud_of(struct unreliable *common)
{
    return container_of(common, struct ud, common);
}

static void ud_start_transmitting(struct unreliable *common, uint32_t first_psn)
{
    ud_of(common)->next_psn = first_psn & PSN_MASK;
}

/* ---- requester ---- */

const struct send_wqe *ud_next(struct ud *ud)
{
    unreliable_settle(&ud->common);
    return unreliable_is_ready(&ud->common) ? send_queue_at(&ud->common.queue, ud->common.queue.next) : 0;
}

static enum reason check_work(const struct ud *ud, const struct send_wqe *work)
{
    const struct request_kind *kind = request_kind(work);
    if (kind->class != REQUEST_SEND || !op_find(op_code(SERVICE_UD, kind->only)))
        return REASON_WORK_UNSUPPORTED;
    return work->length > ud->common.settings.max_message ? REASON_MESSAGE_TOO_LONG : REASON_NONE;
}

/* A Q_Key with the high bit set in the work request means the queue pair's own (IBA 10.2.5, C10-15). */
static uint32_t choose_qkey(const struct ud *ud, const struct send_wqe *work)
{
    const uint32_t controlled = 0x80000000;
    return work->remote_qkey & controlled ? ud->common.settings.qkey : work->remote_qkey;
}

static enum reason build(const struct ud *ud, const struct send_wqe *work, struct packet *out, struct iovec *pieces)
{
    enum reason reason = check_work(ud, work);
    if (reason)
        return reason;
    bth_fill(out, op_code(SERVICE_UD, request_kind(work)->only), ud->common.settings.pkey, work->remote_qp,
             ud->next_psn);
    request_operands(out, work);
    out->solicited = work->flags & IBV_SEND_SOLICITED;
    out->source = ud->common.settings.number;
    out->qkey = choose_qkey(ud, work);
    return request_payload(ud->common.owner, work, 0, work->length, out, pieces);
}

static bool ud_transmit(struct unreliable *common, struct packet *out, struct iovec *pieces, nanos now)
{
    (void)now;
    struct ud *ud = ud_of(common);
    const struct send_wqe *work = ud_next(ud);
    if (!work)
        return false;
    enum reason reason = build(ud, work, out, pieces);
    if (reason) {
        unreliable_end(&ud->common, work, request_status(reason), reason);
        return false;
    }
    ud->next_psn = psn_add(ud->next_psn, 1);
    ud->common.queue.next++;
    return true;
}

/* ---- responder ---- */

/* IBA 9.8.3.1: the checks of a datagram before a receive is spent on it. */
static enum reason ud_check(const struct ud *ud, const struct packet *packet)
{
    const struct unreliable *common = &ud->common;
    enum reason reason = bth_check(&common->settings, SERVICE_UD, common->receiving, common->failed, packet);
    if (reason)
        return reason;
    if (packet->qkey != ud->common.settings.qkey)
        return REASON_PACKET_QKEY;
    return packet->payload.length > ud->common.settings.max_message ? REASON_PACKET_TOO_LONG : REASON_NONE;
}

/* Takes a receive. If the next one is too short for the datagram, it stays for the next datagram (an SRQ's: of any of
 * its queue pairs). */
static enum reason ud_take_receive(struct ud *ud, const struct packet *packet, const struct recv_wqe **receive)
{
    uint64_t least = UD_GRH_LENGTH + (uint64_t)packet->payload.length;
    *receive = ud->common.owner->operations->take_receive(ud->common.owner, packet, least);
    if (!*receive)
        return REASON_PACKET_NO_RECEIVE;
    return *receive == &receive_too_short ? REASON_PACKET_TOO_LONG : REASON_NONE;
}

static enum reason ud_store(struct ud *ud, const struct recv_wqe *receive, const struct packet *packet)
{
    static const uint8_t unknown[UD_GRH_LENGTH];
    struct iovec piece = {(void *)(packet->grh ? packet->grh : unknown), UD_GRH_LENGTH};
    struct payload grh = {.length = UD_GRH_LENGTH, .count = 1, .pieces = &piece};
    enum reason reason = scatter(ud->common.owner, receive, 0, &grh);
    return reason ? reason : scatter(ud->common.owner, receive, UD_GRH_LENGTH, &packet->payload);
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
    ud->common.owner->operations->received(ud->common.owner, receive, &arrival);
}

static void ud_receive(struct unreliable *common, const struct packet *packet, nanos now)
{
    (void)now;
    struct ud *ud = ud_of(common);
    const struct recv_wqe *receive;
    enum reason reason = ud_check(ud, packet);
    if (!reason)
        reason = ud_take_receive(ud, packet, &receive);
    if (reason) {
        ud->common.owner->operations->dropped(ud->common.owner, packet, reason);
        return;
    }
    reason = ud_store(ud, receive, packet);
    if (reason == REASON_PACKET_PULL) {
        ud->common.owner->operations->return_receive(ud->common.owner, receive);
        ud->common.owner->operations->dropped(ud->common.owner, packet, reason);
    } else if (reason) {
        unreliable_fail_receive(&ud->common, receive, IBV_WC_LOC_PROT_ERR, reason, packet);
    } else {
        ud_accept(ud, receive, packet);
    }
}

const struct unreliable_operations ud_operations = {
    .start_transmitting = ud_start_transmitting,
    .posted = unreliable_posted,
    .receive = ud_receive,
    .transmit = ud_transmit,
    .unreadable = unreliable_unreadable,
    .flush = unreliable_flush,
};
