#include "transport/unreliable/uc.h"

#include <string.h>

#include "transport/bth.h"
#include "transport/pkey.h"
#include "transport/request.h"
#include "transport/retire.h"
#include "transport/scatter.h"
#include "transport/segment.h"
#include "wire/psn.h"

void uc_initialize(struct uc *uc, struct engine_owner *owner, const struct send_queue *queue)
{
    memset(uc, 0, sizeof(*uc));
    uc->owner = owner;
    uc->queue = *queue;
    uc->queue.head = uc->queue.next = uc->queue.tail = 0;
    uc->open = RC_CLOSED;
}

void uc_reset(struct uc *uc)
{
    struct uc old = *uc;
    uc_initialize(uc, old.owner, &old.queue);
    uc->pkey = old.pkey;
    uc->destination = old.destination;
    uc->segment = old.segment;
    uc->max_message = old.max_message;
    uc->access = old.access;
    uc->exact = old.exact;
}

void uc_start_receiving(struct uc *uc, uint32_t expected_psn)
{
    uc->expected_psn = expected_psn & PSN_MASK;
    uc->receiving = true;
}

void uc_start_transmitting(struct uc *uc, uint32_t first_psn)
{
    uc->next_psn = first_psn & PSN_MASK;
    uc->transmitting = true;
}

/* ---- requester ---- */

static void report_drained(struct uc *uc)
{
    if (!uc->draining || uc->drained_reported || uc->packet || uc->queue.head != uc->queue.next)
        return;
    uc->drained_reported = true;
    uc->owner->operations->event(uc->owner, IBV_EVENT_SQ_DRAINED);
}

/* What was handed out before is on its way, so its memory is the program's again. */
static void settle(struct uc *uc)
{
    retire_transmitted(&uc->queue, uc->owner);
    report_drained(uc);
}

void uc_drain(struct uc *uc, bool draining)
{
    uc->draining = draining;
    uc->drained_reported = false;
    settle(uc);
}

void uc_posted(struct uc *uc)
{
    if (!uc->failed && !uc->send_error)
        return;
    settle(uc);
    retire_all(&uc->queue, uc->owner);
}

/* Is there work that may be transmitted now? In SQD only what has begun. */
static bool is_ready(const struct uc *uc)
{
    bool open = uc->transmitting && !uc->failed && !uc->send_error;
    return open && uc->queue.next != uc->queue.tail && (uc->packet || !uc->draining);
}

bool uc_has_output(const struct uc *uc)
{
    return uc->queue.head != uc->queue.next || is_ready(uc);
}

static enum reason check_work(const struct uc *uc, const struct send_wqe *work)
{
    const struct request_kind *kind = request_kind(work);
    if (kind->class != REQUEST_SEND && kind->class != REQUEST_WRITE)
        return REASON_WORK_UNSUPPORTED;
    if (!op_find(op_code(SERVICE_UC, kind->only)))
        return REASON_WORK_UNSUPPORTED;
    return work->length > uc->max_message ? REASON_MESSAGE_TOO_LONG : REASON_NONE;
}

static void uc_begin(struct uc *uc, struct send_wqe *work)
{
    work->segment = uc->segment;
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
    bth_fill(out, op_code(SERVICE_UC, operation), uc->pkey, uc->destination, psn_add(work->first_psn, index));
    request_operands(out, work);
    out->solicited = last && work->flags & IBV_SEND_SOLICITED;
    return request_payload(uc->owner, work, offset, last ? work->length - offset : work->segment, out, pieces);
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

/* SQE: the send side alone goes to error (IBA 10.3.1 "Send Queue Error"). */
static void refuse_work(struct uc *uc, enum ibv_wc_status status, enum reason reason)
{
    uc->send_error = true;
    uc->packet = 0;
    retire_failed(&uc->queue, uc->owner, status, reason);
    uc->owner->operations->failed(uc->owner, true);
}

static void advance(struct uc *uc, const struct send_wqe *work)
{
    if (++uc->packet < work->packets)
        return;
    uc->packet = 0;
    uc->queue.next++;
}

/* What lay before the packet's work has ended when the packet was built. */
void uc_unreadable(struct uc *uc)
{
    uc->queue.next = uc->queue.head;
    refuse_work(uc, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
}

static void execute_locally(struct uc *uc, const struct send_wqe *work)
{
    enum reason reason = REASON_NONE;
    enum ibv_wc_status status = uc->owner->operations->local_operation(uc->owner, work, &reason);
    if (status == IBV_WC_SUCCESS)
        retire_head(&uc->queue, uc->owner, IBV_WC_SUCCESS, REASON_NONE);
    else
        refuse_work(uc, status, reason);
}

bool uc_transmit(struct uc *uc, struct packet *out, struct iovec *pieces)
{
    settle(uc);
    while (is_ready(uc)) {
        struct send_wqe *work = send_queue_at(&uc->queue, uc->queue.next);
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
    uc->open = RC_CLOSED;
    uc->received = 0;
}

/* For the next message, of whichever queue pair of an SRQ. */
static void return_receive(struct uc *uc)
{
    const struct recv_wqe *receive = uc->receive;
    uc->receive = 0;
    if (receive)
        uc->owner->operations->return_receive(uc->owner, receive);
}

static void lose_message(struct uc *uc)
{
    close_message(uc);
    return_receive(uc);
}

static void end_receive(struct uc *uc, const struct recv_cqe *arrival)
{
    const struct recv_wqe *receive = uc->receive;
    uc->receive = 0;
    if (receive)
        uc->owner->operations->received(uc->owner, receive, arrival);
}

void uc_flush(struct uc *uc)
{
    const struct recv_cqe flushed = {.status = IBV_WC_WR_FLUSH_ERR, .reason = REASON_FLUSHED, .opcode = IBV_WC_RECV};
    uc->failed = true;
    uc->packet = 0;
    retire_transmitted(&uc->queue, uc->owner);
    retire_all(&uc->queue, uc->owner);
    end_receive(uc, &flushed);
}

static enum reason check_head(const struct uc *uc, const struct packet *packet)
{
    if (!op_find(packet->opcode))
        return REASON_PACKET_OPCODE;
    if (op_service(packet->opcode) != SERVICE_UC)
        return REASON_PACKET_SERVICE;
    if (!uc->receiving || uc->failed)
        return REASON_PACKET_QP_STATE;
    return pkey_matches(packet->pkey, uc->pkey) ? REASON_NONE : REASON_PACKET_PKEY;
}

static void establish(struct uc *uc)
{
    if (!uc->established && !uc->transmitting)
        uc->owner->operations->event(uc->owner, IBV_EVENT_COMM_EST);
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
    else if (uc->open == RC_CLOSED || !(flags & kind))
        return REASON_PACKET_SEQUENCE;
    uc->expected_psn = psn_add(packet->psn, 1);
    return REASON_NONE;
}

/* Do the packets add up: nothing empty on the way, a WRITE to what its RETH says, and no more than may be. */
static bool length_fits(const struct uc *uc, uint32_t flags, const struct packet *packet)
{
    enum { SINGLE = OP_START | OP_END };
    uint64_t total = (uint64_t)uc->received + packet->payload.length;
    uint32_t announced = flags & OP_START ? packet->length : uc->write_length;
    if (((flags & SINGLE) != SINGLE && !packet->payload.length) || total > uc->max_message)
        return false;
    if (uc->exact && !segment_fits(flags, packet->payload.length, uc->segment))
        return false;
    if (flags & OP_SEND)
        return true;
    return announced <= uc->max_message && (flags & OP_END ? total == announced : total < announced);
}

static enum reason uc_take_receive(struct uc *uc, const struct packet *packet)
{
    uc->receive = uc->owner->operations->take_receive(uc->owner, packet, 0);
    return uc->receive ? REASON_NONE : REASON_PACKET_NO_RECEIVE;
}

static enum reason find_target(struct uc *uc, uint64_t address, uint32_t length, struct iovec *memory)
{
    const struct owner_operations *operations = uc->owner->operations;
    if (!(uc->access & IBV_ACCESS_REMOTE_WRITE))
        return REASON_PACKET_MEMORY;
    if (length &&
        operations->remote_memory(uc->owner, uc->write_rkey, address, length, IBV_ACCESS_REMOTE_WRITE, memory))
        return REASON_PACKET_MEMORY;
    return REASON_NONE;
}

/* The whole target is checked when it is named, and its part again when it is written: it may be gone by then. */
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
    return reason ? reason : scatter(uc->owner, uc->receive, uc->received, &packet->payload);
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
    uc_flush(uc);
    uc->owner->operations->failed(uc->owner, false);
}

/* Whatever is wrong with the peer's packets is dropped; what is wrong with our receive is our error (IBA 9.9.3). */
static void uc_refuse(struct uc *uc, enum reason reason, const struct packet *packet)
{
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
        uc->owner->operations->dropped(uc->owner, packet, reason);
    }
}

void uc_receive(struct uc *uc, const struct packet *packet)
{
    enum reason reason = check_head(uc, packet);
    if (reason) {
        uc->owner->operations->dropped(uc->owner, packet, reason);
        return;
    }
    uint32_t flags = op_find(packet->opcode)->flags;
    establish(uc);
    reason = execute(uc, flags, packet);
    if (reason)
        uc_refuse(uc, reason, packet);
    else
        uc_accept(uc, flags, packet);
}
