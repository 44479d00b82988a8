#include "transport/unreliable/uc.h"

#include "base/container.h"
#include "base/likely.h"
#include "transport/bth.h"
#include "transport/request.h"
#include "transport/retire.h"
#include "transport/scatter.h"
#include "transport/segment.h"
#include "wire/foreign/foreign.h"
#include "wire/psn.h"

enum { SINGLE = OP_START | OP_END };

static struct uc *uc_of(struct unreliable *common)
{
    return container_of(common, struct uc, common);
}

static void uc_initialize(struct unreliable *common)
{
    uc_of(common)->open = MESSAGE_CLOSED;
}

static void uc_start_receiving(struct unreliable *common, uint32_t expected_psn)
{
    uc_of(common)->expected_psn = expected_psn & PSN_MASK;
}

static void uc_start_transmitting(struct unreliable *common, uint32_t first_psn)
{
    uc_of(common)->next_psn = first_psn & PSN_MASK;
}

/* ---- requester ---- */

static enum reason check_work(const struct uc *uc, const struct send_wqe *work)
{
    const struct request_kind *kind = request_kind(work);
    if (kind->class != REQUEST_SEND && kind->class != REQUEST_WRITE)
        return REASON_WORK_UNSUPPORTED;
    if (!op_find(op_code(SERVICE_UC, kind->only)))
        return REASON_WORK_UNSUPPORTED;
    return work->length > uc->common.settings.max_message ? REASON_MESSAGE_TOO_LONG : REASON_NONE;
}

static void uc_begin(struct uc *uc, struct send_wqe *work)
{
    work->segment = uc->common.settings.segment;
    work->packets = request_packets(work->length, work->segment);
    work->first_psn = uc->next_psn;
    work->started = true;
    uc->next_psn = psn_add(work->first_psn, work->packets);
}

static enum reason build(const struct uc *uc, const struct send_wqe *work, struct packet *out, struct iovec *pieces)
{
    uint32_t index = uc->packet, offset = index * work->segment;
    bool last = index + 1 == work->packets;
    enum operation operation = request_operation(request_kind(work), index, last);
    bth_fill(out, op_code(SERVICE_UC, operation), uc->common.settings.pkey, uc->common.settings.destination,
             psn_add(work->first_psn, index));
    request_operands(out, work);
    out->solicited = last && work->flags & IBV_SEND_SOLICITED;
    return request_payload(uc->common.owner, work, offset, last ? work->length - offset : work->segment, out, pieces);
}

static enum reason uc_prepare(struct uc *uc, struct send_wqe *work, struct packet *out, struct iovec *pieces)
{
    enum reason reason = work->started ? REASON_NONE : check_work(uc, work);
    if (reason)
        return reason;
    if (!work->started)
        uc_begin(uc, work);
    return build(uc, work, out, pieces);
}

static void refuse_work(struct uc *uc, enum ibv_wc_status status, enum reason reason)
{
    uc->packet = 0;
    unreliable_refuse(&uc->common, status, reason);
}

static void advance(struct uc *uc, const struct send_wqe *work)
{
    uc->common.begun = ++uc->packet < work->packets;
    if (uc->common.begun)
        return;
    uc->packet = 0;
    uc->common.queue.next++;
}

static void uc_unreadable(struct unreliable *common)
{
    uc_of(common)->packet = 0;
    unreliable_unreadable(common);
}

static void execute_locally(struct uc *uc, const struct send_wqe *work)
{
    enum reason reason = REASON_NONE;
    enum ibv_wc_status status = uc->common.owner->operations->local_operation(uc->common.owner, work, &reason);
    if (status == IBV_WC_SUCCESS)
        retire_head(&uc->common.queue, uc->common.owner, IBV_WC_SUCCESS, REASON_NONE);
    else
        refuse_work(uc, status, reason);
}

static bool uc_transmit(struct unreliable *common, struct packet *out, struct iovec *pieces, nanos now)
{
    (void)now;
    struct uc *uc = uc_of(common);
    unreliable_settle(&uc->common);
    while (unreliable_is_ready(&uc->common)) {
        struct send_wqe *work = send_queue_at(&uc->common.queue, uc->common.queue.next);
        if (request_kind(work)->class == REQUEST_LOCAL) {
            execute_locally(uc, work);
            continue;
        }
        enum reason reason = uc_prepare(uc, work, out, pieces);
        if (reason) {
            refuse_work(uc, request_status(reason), reason);
            return false;
        }
        advance(uc, work);
        return true;
    }
    return false;
}

/* ---- responder ---- */

static void close_message(struct uc *uc)
{
    uc->open = MESSAGE_CLOSED;
    uc->received = 0;
}

/* Gives the receive back for the next message; an SRQ's for a message of any of its queue pairs. */
static void return_receive(struct uc *uc)
{
    const struct recv_wqe *receive = uc->receive;
    uc->receive = 0;
    if (receive)
        uc->common.owner->operations->return_receive(uc->common.owner, receive);
}

/* Ends all copies of the message's data before another message gets the memory. */
cold static void settle_message(struct uc *uc)
{
    foreign_settle_message(&uc->lost);
    uc->lost = false;
}

static void lose_message(struct uc *uc)
{
    if (unlikely(uc->open != MESSAGE_CLOSED))
        settle_message(uc);
    close_message(uc);
    return_receive(uc);
}

static void end_receive(struct uc *uc, const struct recv_cqe *arrival)
{
    const struct recv_wqe *receive = uc->receive;
    uc->receive = 0;
    if (receive)
        uc->common.owner->operations->received(uc->common.owner, receive, arrival);
}

static void uc_flush(struct unreliable *common)
{
    struct uc *uc = uc_of(common);
    const struct recv_cqe flushed = {.status = IBV_WC_WR_FLUSH_ERR, .reason = REASON_FLUSHED, .opcode = IBV_WC_RECV};
    uc->packet = 0;
    settle_message(uc);
    unreliable_flush(&uc->common);
    end_receive(uc, &flushed);
}

static void establish(struct uc *uc)
{
    if (!uc->established && !uc->common.transmitting)
        uc->common.owner->operations->event(uc->common.owner, IBV_EVENT_COMM_EST);
    uc->established = true;
}

/* A first packet is always welcome and sets the PSN anew; others must continue the open message (IBA 9.8.2.2). */
static enum reason check_sequence(struct uc *uc, uint32_t flags, const struct packet *packet)
{
    uint32_t kind = uc->open == OPERATION_SEND_FIRST ? OP_SEND : OP_WRITE;
    if (flags & OP_START)
        lose_message(uc);
    else if (packet->psn != uc->expected_psn)
        return REASON_PACKET_PSN;
    else if (uc->open == MESSAGE_CLOSED || !(flags & kind))
        return REASON_PACKET_SEQUENCE;
    uc->expected_psn = psn_add(packet->psn, 1);
    return REASON_NONE;
}

/* Returns true if the packets add up: no packet before the last is empty, a WRITE has the length in its RETH, and no
 * message has more than max_message bytes. */
static bool length_fits(const struct uc *uc, uint32_t flags, const struct packet *packet)
{
    uint64_t total = (uint64_t)uc->received + packet->payload.length;
    uint32_t announced = flags & OP_START ? packet->length : uc->write_length;
    if (((flags & SINGLE) != SINGLE && !packet->payload.length) || total > uc->common.settings.max_message)
        return false;
    if (uc->common.settings.exact && !segment_fits(flags, packet->payload.length, uc->common.settings.segment))
        return false;
    if (flags & OP_SEND)
        return true;
    return announced <= uc->common.settings.max_message && (flags & OP_END ? total == announced : total < announced);
}

static enum reason uc_take_receive(struct uc *uc, const struct packet *packet)
{
    uc->receive = uc->common.owner->operations->take_receive(uc->common.owner, packet, 0);
    return uc->receive ? REASON_NONE : REASON_PACKET_NO_RECEIVE;
}

static enum reason find_target(struct uc *uc, uint64_t address, uint32_t length, struct iovec *memory)
{
    const struct owner_operations *operations = uc->common.owner->operations;
    if (!(uc->common.settings.access & IBV_ACCESS_REMOTE_WRITE))
        return REASON_PACKET_MEMORY;
    if (length &&
        operations->remote_memory(uc->common.owner, uc->write_rkey, address, length, IBV_ACCESS_REMOTE_WRITE, memory))
        return REASON_PACKET_MEMORY;
    return REASON_NONE;
}

/* The whole target is checked when the first packet names it, and each part again when it is written: it may be gone by
 * then. */
static enum reason open_write(struct uc *uc, const struct packet *packet)
{
    struct iovec memory;
    uc->write_address = packet->address;
    uc->write_rkey = packet->rkey;
    uc->write_length = packet->length;
    return find_target(uc, packet->address, packet->length, &memory);
}

static enum reason execute_write(struct uc *uc, uint32_t flags, const struct packet *packet)
{
    struct iovec memory;
    enum reason reason = flags & OP_START ? open_write(uc, packet) : REASON_NONE;
    if (!reason && flags & OP_IMMDT)
        reason = uc_take_receive(uc, packet);
    if (!reason)
        reason = find_target(uc, uc->write_address + uc->received, packet->payload.length, &memory);
    if (reason || !packet->payload.length)
        return reason;
    if (payload_copy(&packet->payload, 0, &memory, 1))
        return REASON_NONE;
    return payload_can_land(&memory, 1) ? REASON_PACKET_PULL : REASON_REMOTE_GONE;
}

static enum reason execute_send(struct uc *uc, uint32_t flags, const struct packet *packet)
{
    enum reason reason = flags & OP_START ? uc_take_receive(uc, packet) : REASON_NONE;
    return reason ? reason : scatter(uc->common.owner, uc->receive, uc->received, &packet->payload);
}

static enum reason execute(struct uc *uc, uint32_t flags, const struct packet *packet)
{
    enum reason reason = check_sequence(uc, flags, packet);
    if (reason)
        return reason;
    if (!length_fits(uc, flags, packet))
        return REASON_MESSAGE_LENGTH;
    return flags & OP_SEND ? execute_send(uc, flags, packet) : execute_write(uc, flags, packet);
}

static void uc_accept(struct uc *uc, uint32_t flags, const struct packet *packet)
{
    if (flags & OP_START)
        uc->open = op_operation(packet->opcode);
    uc->received += packet->payload.length;
    if (!(flags & OP_END))
        return;
    const struct recv_cqe arrival = {
        .status = IBV_WC_SUCCESS,
        .opcode = flags & OP_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
        .length = uc->received,
        .flags = flags & OP_IMMDT ? IBV_WC_WITH_IMM : 0,
        .immediate_or_key = flags & OP_IMMDT ? packet->immediate : 0,
        .solicited = packet->solicited,
        .packet = packet,
    };
    close_message(uc);
    if (flags & (OP_SEND | OP_IMMDT))
        end_receive(uc, &arrival);
}

static void fail_receive(struct uc *uc, enum ibv_wc_status status, enum reason reason, const struct packet *packet)
{
    const struct recv_cqe arrival = {.status = status, .reason = reason, .opcode = IBV_WC_RECV, .packet = packet};
    end_receive(uc, &arrival);
    uc_flush(&uc->common);
    uc->common.owner->operations->failed(uc->common.owner, false);
}

/* A faulty packet of the peer is dropped; a faulty receive is our error (IBA 9.9.3). */
static void uc_refuse(struct uc *uc, enum reason reason, const struct packet *packet)
{
    settle_message(uc);
    close_message(uc);
    switch (reason) {
    case REASON_RECEIVE_TOO_SHORT:
        fail_receive(uc, IBV_WC_LOC_LEN_ERR, reason, packet);
        return;
    case REASON_RECEIVE_KEY_UNKNOWN:
    case REASON_RECEIVE_PD:
    case REASON_RECEIVE_RANGE:
    case REASON_RECEIVE_PERMISSION:
    case REASON_RECEIVE_GONE:
        fail_receive(uc, IBV_WC_LOC_PROT_ERR, reason, packet);
        return;
    default:
        return_receive(uc);
        uc->common.owner->operations->dropped(uc->common.owner, packet, reason);
    }
}

/* The last packet of a message waits for the data of all, and reports what was lost. */
cold static enum reason execute_gathered(struct uc *uc, uint32_t flags, const struct packet *packet)
{
    foreign_gather(&uc->lost, flags & OP_END);
    enum reason reason = execute(uc, flags, packet);
    foreign_gather(NULL, false);
    if (flags & OP_END)
        foreign_settle_message(&uc->lost);
    return reason || !uc->lost ? reason : flags & OP_SEND ? REASON_RECEIVE_GONE : REASON_REMOTE_GONE;
}

static void uc_receive(struct unreliable *common, const struct packet *packet, nanos now)
{
    (void)now;
    struct uc *uc = uc_of(common);
    enum reason reason = bth_check(&common->settings, SERVICE_UC, common->receiving, common->failed, packet);
    if (reason) {
        uc->common.owner->operations->dropped(uc->common.owner, packet, reason);
        return;
    }
    uint32_t flags = op_find(packet->opcode)->flags;
    establish(uc);
    reason = (flags & SINGLE) == SINGLE ? execute(uc, flags, packet) : execute_gathered(uc, flags, packet);
    if (reason)
        uc_refuse(uc, reason, packet);
    else
        uc_accept(uc, flags, packet);
}

static const struct recv_wqe *uc_open_receive(const struct unreliable *common)
{
    return container_of(common, const struct uc, common)->receive;
}

const struct unreliable_operations uc_operations = {
    .initialize = uc_initialize,
    .start_receiving = uc_start_receiving,
    .start_transmitting = uc_start_transmitting,
    .posted = unreliable_posted,
    .receive = uc_receive,
    .transmit = uc_transmit,
    .unreadable = uc_unreadable,
    .flush = uc_flush,
    .open_receive = uc_open_receive,
};
