#include "transport/rc/responder.h"

#include "base/likely.h"
#include "transport/rc/duplicates.h"
#include "transport/rc/execute.h"
#include "transport/rc/fail.h"
#include "transport/rc/responses.h"
#include "transport/request.h"
#include "transport/segment.h"
#include "wire/foreign/foreign.h"
#include "wire/psn.h"

enum { RESPONDED = OP_READ | OP_FLUSH | OP_ATOMIC | OP_ATOMIC_WRITE };

/* IBA 9.7.4.1.2: checks the order of packets within a message. */
static inline enum reason check_sequence(const struct rc *rc, uint32_t flags, const struct packet *packet)
{
    uint8_t open = rc->responder.open;
    if (flags & OP_START)
        return open == MESSAGE_CLOSED ? REASON_NONE : REASON_REQUEST_SEQUENCE;
    if (open == MESSAGE_CLOSED)
        return REASON_REQUEST_SEQUENCE;
    uint32_t kind = open == OPERATION_SEND_FIRST ? OP_SEND : OP_WRITE;
    bool same_srq = rc->settings.service != SERVICE_XRC || packet->srq == rc->responder.srq;
    return flags & kind && same_srq ? REASON_NONE : REASON_REQUEST_SEQUENCE;
}

/* Annex A19: one kind of flush or both. */
static unsigned flush_access(const struct packet *packet)
{
    return (packet->placement & NEWER_FLUSH_GLOBAL ? NEWER_ACCESS_FLUSH_GLOBAL : 0) |
           (packet->placement & NEWER_FLUSH_PERSISTENT ? NEWER_ACCESS_FLUSH_PERSISTENT : 0);
}

static bool flush_is_known(const struct packet *packet)
{
    unsigned known = NEWER_FLUSH_GLOBAL | NEWER_FLUSH_PERSISTENT;
    return packet->placement && !(packet->placement & ~known) && packet->selectivity <= NEWER_FLUSH_REGION;
}

static inline unsigned needed_access(uint32_t flags, const struct packet *packet)
{
    if (flags & (OP_WRITE | OP_ATOMIC_WRITE))
        return IBV_ACCESS_REMOTE_WRITE;
    if (flags & OP_READ)
        return IBV_ACCESS_REMOTE_READ;
    if (flags & OP_ATOMIC)
        return IBV_ACCESS_REMOTE_ATOMIC;
    return flags & OP_FLUSH ? flush_access(packet) : 0;
}

/* IBA 9.7.4.1.3: a function that this QP is not set up for, too many READs, a misaligned atomic. */
static inline enum reason check_validity(struct rc *rc, uint32_t flags, const struct packet *packet, unsigned access)
{
    if (flags & OP_FLUSH && !flush_is_known(packet))
        return REASON_FLUSH_KIND;
    if ((rc->settings.access & access) != access)
        return REASON_QP_PERMISSION;
    if (flags & RESPONDED && !responses_have_room(rc))
        return REASON_TOO_MANY_READS;
    if (flags & (OP_ATOMIC | OP_ATOMIC_WRITE) && packet->address % ATOMIC_LENGTH)
        return REASON_ATOMIC_ALIGNMENT;
    return REASON_NONE;
}

/* IBA 9.7.4.1.4: checks all memory that the peer names, when it names it, and writes it to *memory if it has any
 * length. */
static inline enum reason check_access(const struct rc *rc, uint32_t flags, const struct packet *packet,
                                       unsigned access, struct iovec *memory)
{
    if (!(flags & (OP_RETH | OP_ATOMICETH)))
        return REASON_NONE;
    bool whole = flags & OP_FLUSH && packet->selectivity == NEWER_FLUSH_REGION;
    uint32_t length = whole ? 0 : flags & OP_RETH ? packet->length : ATOMIC_LENGTH;
    return length || flags & OP_FLUSH
               ? rc->owner->operations->remote_memory(rc->owner, packet->rkey, packet->address, length, access, memory)
               : REASON_NONE;
}

/* A WRITE's packets must add up to the length in its RETH. Inside the host the packets of a message need not be of one
 * size: a link may carry larger ones than the path MTU. */
static inline bool length_fits(const struct rc *rc, uint32_t flags, const struct packet *packet)
{
    const struct responder *responder = &rc->responder;
    uint32_t carried = packet->payload.length, single = OP_START | OP_END;
    uint64_t total = (uint64_t)responder->received + carried, most = rc->settings.max_message;
    if (flags & (OP_ATOMIC | OP_FLUSH))
        return true;
    if (flags & OP_ATOMIC_WRITE)
        return carried == ATOMIC_LENGTH && packet->length == ATOMIC_LENGTH;
    if (flags & OP_READ)
        return packet->length <= most;
    if ((flags & single) != single && !carried)
        return false;
    if (rc->settings.exact && !segment_fits(flags, carried, rc->settings.segment))
        return false;
    if (flags & OP_SEND)
        return total <= most;
    uint32_t announced = flags & OP_START ? packet->length : responder->write_length;
    return announced <= most && (flags & OP_END ? total == announced : total < announced);
}

const struct recv_wqe receive_unfetched, receive_too_short;

/* A receive that was taken for a packet whose payload got lost waits for the repeat. */
static inline enum reason responder_take_receive(struct rc *rc, const struct packet *packet)
{
    struct responder *responder = &rc->responder;
    if (responder->receive)
        return REASON_NONE;
    const struct recv_wqe *receive = rc->owner->operations->take_receive(rc->owner, packet, 0);
    if (receive == &receive_unfetched)
        return REASON_PACKET_PULL;
    responder->receive = receive;
    return receive ? REASON_NONE : REASON_PACKET_NO_RECEIVE;
}

__attribute__((always_inline)) static inline enum reason
responder_check(struct rc *rc, uint32_t flags, const struct packet *packet, struct iovec *memory)
{
    unsigned access = needed_access(flags, packet);
    enum reason reason = check_sequence(rc, flags, packet);
    if (!reason)
        reason = responses_select_srq(rc, packet->srq);
    if (!reason)
        reason = check_validity(rc, flags, packet, access);
    if (!reason)
        reason = check_access(rc, flags, packet, access, memory);
    if (!reason && !length_fits(rc, flags, packet))
        reason = REASON_MESSAGE_LENGTH;
    if (!reason && flags & OP_SEND && flags & OP_START)
        reason = responder_take_receive(rc, packet);
    return reason;
}

__attribute__((always_inline)) static inline enum reason
execute(struct rc *rc, uint32_t flags, const struct packet *packet, const struct iovec *memory)
{
    if (flags & OP_SEND)
        return execute_send(rc, flags, packet);
    if (flags & OP_WRITE) {
        enum reason reason = execute_write(rc, flags, packet, memory);
        return !reason && flags & OP_IMMDT ? responder_take_receive(rc, packet) : reason;
    }
    if (flags & OP_READ)
        return execute_read(rc, packet);
    if (flags & OP_FLUSH)
        return execute_flush(rc, packet);
    return flags & OP_ATOMIC ? execute_atomic(rc, packet) : execute_atomic_write(rc, packet);
}

static inline void complete_receive(struct rc *rc, uint32_t flags, const struct packet *packet)
{
    struct responder *responder = &rc->responder;
    const struct recv_wqe *receive = responder->receive;
    bool immediate = flags & OP_IMMDT, invalidate = flags & OP_IETH;
    const struct recv_cqe arrival = {
        .status = IBV_WC_SUCCESS,
        .opcode = flags & OP_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
        .length = responder->received + packet->payload.length,
        .flags = (immediate ? IBV_WC_WITH_IMM : 0) | (invalidate ? IBV_WC_WITH_INV : 0),
        .immediate_or_key = immediate    ? packet->immediate
                            : invalidate ? packet->invalidate_key
                                         : 0,
        .solicited = packet->solicited,
        .packet = packet,
    };
    responder->receive = 0;
    rc->owner->operations->received(rc->owner, receive, &arrival);
}

/* Accepts the packet: the next one is expected from now on, and the message may be complete. */
__attribute__((always_inline)) static inline void responder_accept(struct rc *rc, uint32_t flags,
                                                                   const struct packet *packet)
{
    struct responder *responder = &rc->responder;
    responder->nak_due = responder->nak_sent = false;
    if (!(flags & RESPONDED)) /* requests with an answer have moved it past that */
        responder->expected_psn = psn_add(packet->psn, 1);
    if (packet->ack_requested && !(flags & RESPONDED))
        responses_acknowledge(rc, packet->psn);
    else if (flags & OP_END && !(flags & RESPONDED))
        responses_owe(rc, packet->psn);
    if (!(flags & OP_END)) {
        if (flags & OP_START)
            responder->open = op_operation(packet->opcode), responder->srq = packet->srq;
        responder->received += packet->payload.length;
        return;
    }
    if (!(flags & RESPONDED))
        responder->msn++;
    if (flags & (OP_SEND | OP_IMMDT))
        complete_receive(rc, flags, packet);
    responder->open = MESSAGE_CLOSED;
    responder->received = 0;
}

struct refusal {
    uint8_t syndrome;
    enum ibv_wc_status status; /* of the open receive */
    enum ibv_event_type event; /* unless the receive's completion reports it */
};

/* IBA 9.9.3: the effect of each fault on the peer and on this QP. */
static struct refusal find_refusal(enum reason reason)
{
    switch (reason) {
    case REASON_RECEIVE_TOO_SHORT:
        return (struct refusal){SYNDROME_NAK_INVALID_REQUEST, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_FATAL};
    case REASON_RECEIVE_KEY_UNKNOWN:
    case REASON_RECEIVE_PD:
    case REASON_RECEIVE_RANGE:
    case REASON_RECEIVE_PERMISSION:
    case REASON_RECEIVE_GONE:
        return (struct refusal){SYNDROME_NAK_REMOTE_OPERATION, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL};
    case REASON_REMOTE_KEY_UNKNOWN:
    case REASON_REMOTE_PD:
    case REASON_REMOTE_RANGE:
    case REASON_REMOTE_PERMISSION:
    case REASON_REMOTE_WINDOW_QP:
    case REASON_REMOTE_GONE:
        return (struct refusal){SYNDROME_NAK_REMOTE_ACCESS, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR};
    case REASON_XRC_DOMAIN:
        return (struct refusal){SYNDROME_NAK_REMOTE_ACCESS, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR};
    default:
        return (struct refusal){SYNDROME_NAK_INVALID_REQUEST, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR};
    }
}

/* Returns true if there is a receive whose completion reports the refusal. For a WRITE with immediate a receive is
 * taken only now (11.6.2, local access error). */
static bool is_told(struct rc *rc, const struct refusal *refusal, const struct packet *packet)
{
    if (refusal->status == IBV_WC_LOC_ACCESS_ERR && op_find(packet->opcode)->flags & OP_IMMDT)
        responder_take_receive(rc, packet);
    return rc->responder.receive && refusal->status != IBV_WC_WR_FLUSH_ERR;
}

static void refuse_for_good(struct rc *rc, enum reason reason, const struct packet *packet)
{
    struct refusal refusal = find_refusal(reason);
    bool told = is_told(rc, &refusal, packet);
    responses_nak(rc, refusal.syndrome, packet->psn);
    fail_responder(rc, refusal.status, reason, packet);
    if (!told)
        rc->owner->operations->event(rc->owner, refusal.event);
}

/* Class J, which has no NAK: the message has arrived and is acknowledged; only the key that it names is wrong. */
static void fail_invalidation(struct rc *rc, const struct packet *packet)
{
    rc->responder.msn++;
    responses_acknowledge(rc, packet->psn);
    fail_responder(rc, IBV_WC_REM_INV_REQ_ERR, REASON_INVALIDATE_KEY, packet);
}

cold static void responder_refuse(struct rc *rc, enum reason reason, const struct packet *packet)
{
    if (reason == REASON_INVALIDATE_KEY)
        return fail_invalidation(rc, packet);
    rc->owner->operations->dropped(rc->owner, packet, reason);
    if (reason == REASON_PACKET_NO_RECEIVE)
        responses_nak(rc, SYNDROME_RNR | (rc->settings.min_rnr_timer & 31), packet->psn);
    else if (reason == REASON_PACKET_PULL)
        responses_nak(rc, SYNDROME_NAK_SEQUENCE, packet->psn);
    else
        refuse_for_good(rc, reason, packet);
}

/* IBA 9.7.5: a gap is reported once; then the responder is silent until the gap is filled. */
static void report_gap(struct rc *rc, const struct packet *packet)
{
    rc->owner->operations->dropped(rc->owner, packet, REASON_PACKET_PSN);
    if (!rc->responder.nak_sent)
        responses_nak(rc, SYNDROME_NAK_SEQUENCE, rc->responder.expected_psn);
}

static void establish(struct rc *rc, const struct packet *packet, int32_t ahead)
{
    rc->responder.established = true;
    if (ahead)
        rc->owner->operations->dropped(rc->owner, packet, REASON_PACKET_FIRST_PSN);
    if (!rc->transmitting)
        rc->owner->operations->event(rc->owner, IBV_EVENT_COMM_EST);
}

/* Takes the request whose turn it is. The flags of nearly all requests are passed as a constant, so that the
 * compiler keeps only the steps that such a request needs. */
__attribute__((always_inline)) static inline void take_request(struct rc *rc, uint32_t flags,
                                                               const struct packet *packet)
{
    struct iovec memory;
    enum reason reason = responder_check(rc, flags, packet, &memory);
    if (!reason)
        reason = execute(rc, flags, packet, &memory);
    if (unlikely(reason != REASON_NONE))
        responder_refuse(rc, reason, packet);
    else
        responder_accept(rc, flags, packet);
}

/* The reason for bytes of a message that were lost after they were accepted. The last packet waits for all bytes of the
 * message, wherever its own are stored. */
static enum reason responder_settle(const struct rc *rc, uint32_t flags)
{
    if (flags & OP_END)
        foreign_settle_message(&rc->responder.lost);
    if (!rc->responder.lost)
        return REASON_NONE;
    return flags & OP_SEND ? REASON_RECEIVE_GONE : REASON_REMOTE_GONE;
}

cold static enum reason perform_gathered(struct rc *rc, uint32_t flags, const struct packet *packet)
{
    struct iovec memory;
    foreign_gather(&rc->responder.lost, flags & OP_END);
    enum reason reason = responder_check(rc, flags, packet, &memory);
    if (!reason)
        reason = execute(rc, flags, packet, &memory);
    foreign_gather(NULL, false);
    enum reason lost = responder_settle(rc, flags);
    return lost ? lost : reason;
}

/* Takes packets of longer messages, and rare requests. */
cold static void take_request_slow(struct rc *rc, uint32_t flags, const struct packet *packet)
{
    enum reason reason = perform_gathered(rc, flags, packet);
    if (reason)
        responder_refuse(rc, reason, packet);
    else
        responder_accept(rc, flags, packet);
}

/* Takes a packet that is not the expected one. */
cold static void receive_out_of_turn(struct rc *rc, const struct packet *packet, int32_t ahead)
{
    if (ahead > 0)
        report_gap(rc, packet);
    else
        duplicates_receive(rc, packet);
}

void responder_receive(struct rc *rc, const struct packet *packet)
{
    enum { ONLY = OP_START | OP_END | OP_PAYLOAD };
    uint32_t flags = op_find(packet->opcode)->flags;
    int32_t ahead = psn_distance(packet->psn, rc->responder.expected_psn);
    if (unlikely(!rc->responder.established))
        establish(rc, packet, ahead);
    if (unlikely(ahead))
        receive_out_of_turn(rc, packet, ahead);
    else if (flags == (OP_SEND | ONLY))
        take_request(rc, OP_SEND | ONLY, packet);
    else if (flags == (OP_WRITE | ONLY | OP_RETH))
        take_request(rc, OP_WRITE | ONLY | OP_RETH, packet);
    else
        take_request_slow(rc, flags, packet);
}
