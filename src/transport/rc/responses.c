#include "transport/rc/responses.h"

#include "transport/rc/fail.h"
#include "wire/foreign/foreign.h"
#include "wire/psn.h"

static struct responder_resource *saved_at(const struct rc *rc, uint32_t position)
{
    return &rc->responder.saved[position % rc->responder.saved_size];
}

enum reason responses_select_srq(struct rc *rc, uint32_t number)
{
    struct engine_owner *owner = rc->owner;
    return rc->settings.service == SERVICE_XRC && owner->operations->select_srq
               ? owner->operations->select_srq(owner, number)
               : REASON_NONE;
}

void responses_nak(struct rc *rc, uint8_t syndrome, uint32_t psn)
{
    rc->responder.nak_due = rc->responder.nak_sent = true;
    rc->responder.nak_syndrome = syndrome;
    rc->responder.nak_psn = psn;
}

/* Gives the ring of kept requests a new size when no answer is owed, and drops results that were kept for repeats. */
static void resize(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    uint8_t wanted = rc->settings.max_dest_rd_atomic, most = responder->saved ? responder->saved_most : 0;
    uint8_t size = wanted < most ? wanted : most;
    if (responder->saved_size == size || responder->saved_next != responder->saved_tail)
        return;
    responder->saved_size = size;
    responder->saved_head = responder->saved_next = responder->saved_tail = 0;
}

/* A new request takes the place of the oldest, unless the first answer to that is still owed. */
bool responses_have_room(struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    resize(rc);
    if (!responder->saved_size)
        return false;
    return responder->saved_tail - responder->saved_head < responder->saved_size ||
           saved_at(rc, responder->saved_head)->responded;
}

/* Skips requests whose answer is complete. */
static void skip_complete(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    while (responder->saved_next != responder->saved_tail) {
        const struct responder_resource *saved = saved_at(rc, responder->saved_next);
        if (saved->next != saved->stop)
            return;
        responder->saved_next++;
    }
}

static void forget_oldest(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    if (responder->saved_next == responder->saved_head)
        responder->saved_next++;
    responder->saved_head++;
    if (responder->saved_head == responder->saved_size) { /* a wrap-around at 2^32 would lose the slots' order */
        responder->saved_head = 0;
        responder->saved_next -= responder->saved_size;
        responder->saved_tail -= responder->saved_size;
    }
    skip_complete(rc);
}

struct responder_resource *responses_save(struct rc *rc, const struct packet *packet, uint32_t packets)
{
    struct responder *responder = &rc->responder;
    if (responder->saved_tail - responder->saved_head == responder->saved_size)
        forget_oldest(rc);
    struct responder_resource *saved = saved_at(rc, responder->saved_tail++);
    *saved = (struct responder_resource){.operation = op_operation(packet->opcode),
                                         .first_psn = packet->psn,
                                         .packets = packets,
                                         .msn = responder->msn,
                                         .srq = packet->srq,
                                         .segment = rc->settings.segment,
                                         .stop = packets};
    return saved;
}

struct responder_resource *responses_find(struct rc *rc, uint32_t psn)
{
    const struct responder *responder = &rc->responder;
    for (uint32_t i = responder->saved_tail; i != responder->saved_head; i--) {
        struct responder_resource *saved = saved_at(rc, i - 1);
        if (psn_add(psn, -saved->first_psn) < saved->packets)
            return saved;
    }
    return 0;
}

uint32_t responses_acknowledgeable(const struct rc *rc, uint32_t psn)
{
    const struct responder *responder = &rc->responder;
    uint32_t limit = responder->expected_psn;
    for (uint32_t i = responder->saved_tail; i != responder->saved_head; i--) {
        uint32_t first = saved_at(rc, i - 1)->first_psn;
        if (psn_distance(first, psn) > 0 && psn_distance(first, limit) < 0)
            limit = first;
    }
    return psn_add(limit, PSN_MASK);
}

void responses_retransmit(struct rc *rc, struct responder_resource *saved, uint32_t start, uint32_t stop,
                          uint32_t until)
{
    struct responder *responder = &rc->responder;
    uint32_t position = responder->saved_head;
    saved->start = saved->next = start;
    saved->stop = stop;
    saved->until = until;
    while (position != responder->saved_next && saved_at(rc, position) != saved)
        position++;
    responder->saved_next = position;
}

/* A READ response and an atomic's answer acknowledge all requests before them. */
static void absorb_ack(struct responder *responder, uint32_t psn)
{
    if (responder->ack_due && psn_distance(responder->ack_psn, psn) < 0)
        responder->ack_due = false;
    if (responder->ack_late && psn_distance(responder->late_psn, psn) < 0)
        responder->ack_late = false;
}

static enum operation response_operation(const struct responder_resource *saved)
{
    bool last = saved->next + 1 == saved->stop;
    if (saved->next == saved->start)
        return last ? OPERATION_READ_RESPONSE_ONLY : OPERATION_READ_RESPONSE_FIRST;
    return last ? OPERATION_READ_RESPONSE_LAST : OPERATION_READ_RESPONSE_MIDDLE;
}

/* The memory is looked up for each packet: it may have been deregistered since the request arrived. */
static enum reason add_read_payload(struct rc *rc, const struct responder_resource *saved, struct packet *out,
                                    struct iovec *pieces)
{
    uint32_t offset = saved->next * saved->segment, left = saved->until - offset;
    uint32_t length = left < saved->segment ? left : saved->segment;
    if (!length)
        return REASON_NONE;
    out->payload = (struct payload){.length = length, .count = 1, .pieces = pieces};
    enum reason reason = responses_select_srq(rc, saved->srq);
    if (reason)
        return reason;
    reason = rc->owner->operations->remote_memory(rc->owner, saved->rkey, saved->address + offset, length,
                                                  IBV_ACCESS_REMOTE_READ, pieces);
    if (!reason)
        foreign_send(&rc->responder, (const uint8_t *)pieces->iov_base - offset, saved->until);
    return reason;
}

static enum reason write_response(struct rc *rc, const struct responder_resource *saved, uint32_t psn,
                                  struct packet *out, struct iovec *pieces)
{
    bool is_atomic = saved->operation == OPERATION_COMPARE_SWAP || saved->operation == OPERATION_FETCH_ADD;
    bth_write(&rc->settings, out, is_atomic ? OPERATION_ATOMIC_ACKNOWLEDGE : response_operation(saved), psn);
    responses_write_aeth(out, SYNDROME_ACK, saved->msn);
    out->original = saved->original;
    return saved->operation == OPERATION_READ_REQUEST ? add_read_payload(rc, saved, out, pieces) : REASON_NONE;
}

/* Reports a READ that was accepted before to the owner, as a request that is refused when it arrives. */
static void report_refused(struct rc *rc, const struct responder_resource *saved, enum reason reason)
{
    struct packet request = {.rkey = saved->rkey, .address = saved->address, .length = saved->until, .srq = saved->srq};
    bth_write(&rc->settings, &request, OPERATION_READ_REQUEST, saved->first_psn);
    rc->owner->operations->dropped(rc->owner, &request, reason);
}

static void withdraw_read(struct rc *rc, const struct responder_resource *saved, uint32_t psn, enum reason reason)
{
    if (saved && !rc->failed)
        report_refused(rc, saved, reason);
    rc->responder.saved_next = rc->responder.saved_tail;
    rc->responder.ack_due = rc->responder.ack_late = false;
    responses_nak(rc, SYNDROME_NAK_REMOTE_ACCESS, psn);
    if (rc->failed)
        return;
    fail_responder(rc, IBV_WC_WR_FLUSH_ERR, reason, 0);
    rc->owner->operations->event(rc->owner, IBV_EVENT_QP_ACCESS_ERR);
}

void responses_unreadable(struct rc *rc, uint32_t psn)
{
    withdraw_read(rc, responses_find(rc, psn), psn, REASON_REMOTE_GONE);
}

static bool transmit_response(struct rc *rc, struct packet *out, struct iovec *pieces)
{
    struct responder_resource *saved = saved_at(rc, rc->responder.saved_next);
    uint32_t psn = psn_add(saved->first_psn, saved->next);
    enum reason reason = write_response(rc, saved, psn, out, pieces);
    if (reason) {
        withdraw_read(rc, saved, psn, reason);
        return false;
    }
    absorb_ack(&rc->responder, psn);
    if (++saved->next == saved->stop) {
        saved->responded = true;
        skip_complete(rc);
    }
    return true;
}

static void transmit_nak(struct rc *rc, struct packet *out)
{
    struct responder *responder = &rc->responder;
    bth_write(&rc->settings, out, OPERATION_ACKNOWLEDGE, responder->nak_psn);
    responses_write_aeth(out, responder->nak_syndrome, responder->msn);
    responder->nak_due = false;
    absorb_ack(responder, responder->nak_psn);
}

bool responses_transmit(struct rc *rc, struct packet *out, struct iovec *pieces)
{
    struct responder *responder = &rc->responder;
    if (responder->saved_next != responder->saved_tail && transmit_response(rc, out, pieces))
        return true;
    if (responder->nak_due)
        transmit_nak(rc, out);
    else if (responder->ack_due)
        responses_transmit_ack(rc, rc->settings.service, out);
    else
        return false;
    return true;
}
