#include "transport/request.h"

#include "wire/psn.h"

#define MESSAGE(kind, name, end)                                                                                       \
    {                                                                                                                  \
        kind, OPERATION_##name##_FIRST, OPERATION_##name##_MIDDLE, OPERATION_##name##_LAST##end,                       \
            OPERATION_##name##_ONLY##end                                                                               \
    }
#define SINGLE(kind, operation)                                                                                        \
    {                                                                                                                  \
        kind, operation, operation, operation, operation                                                               \
    }

const struct request_kind request_kinds[256] = {
    [IBV_WR_RDMA_WRITE] = MESSAGE(REQUEST_WRITE, WRITE, ),
    [IBV_WR_RDMA_WRITE_WITH_IMM] = MESSAGE(REQUEST_WRITE, WRITE, _IMMEDIATE),
    [IBV_WR_SEND] = MESSAGE(REQUEST_SEND, SEND, ),
    [IBV_WR_SEND_WITH_IMM] = MESSAGE(REQUEST_SEND, SEND, _IMMEDIATE),
    [IBV_WR_SEND_WITH_INV] = MESSAGE(REQUEST_SEND, SEND, _INVALIDATE),
    [IBV_WR_RDMA_READ] = SINGLE(REQUEST_READ, OPERATION_READ_REQUEST),
    [IBV_WR_ATOMIC_CMP_AND_SWP] = SINGLE(REQUEST_ATOMIC, OPERATION_COMPARE_SWAP),
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = SINGLE(REQUEST_ATOMIC, OPERATION_FETCH_ADD),
    [NEWER_WR_FLUSH] = SINGLE(REQUEST_FLUSH, OPERATION_FLUSH),
    [IBV_WR_ATOMIC_WRITE] = SINGLE(REQUEST_ATOMIC_WRITE, OPERATION_ATOMIC_WRITE),
    [IBV_WR_LOCAL_INV] = {REQUEST_LOCAL},
    [IBV_WR_BIND_MW] = {REQUEST_LOCAL},
};

/* All of a message's PSNs, behind a full window, must be on one side of the PSN circle. */
static uint32_t most_packets(const struct rc *rc)
{
    uint32_t half = PSN_MASK / 2, window = rc->settings.window;
    return window < half ? half - window : 1;
}

uint32_t request_packets(uint32_t length, uint32_t segment)
{
    return length <= segment ? 1 : (length - 1) / segment + 1;
}

enum reason request_check(const struct rc *rc, const struct send_wqe *work)
{
    enum request_class class = request_kind(work)->class;
    if (class == REQUEST_UNKNOWN)
        return REASON_WORK_UNSUPPORTED;
    if (class >= REQUEST_READ && !rc->settings.max_rd_atomic)
        return REASON_READS_DISABLED;
    if (class >= REQUEST_ATOMIC)
        return work->length < ATOMIC_LENGTH ? REASON_LOCAL_LENGTH : REASON_NONE;
    if (work->length > rc->settings.max_message ||
        request_packets(work->length, rc->settings.segment) > most_packets(rc))
        return REASON_MESSAGE_TOO_LONG;
    return REASON_NONE;
}

enum ibv_wc_status request_status(enum reason reason)
{
    switch (reason) {
    case REASON_LOCAL_LENGTH:
    case REASON_MESSAGE_TOO_LONG:
        return IBV_WC_LOC_LEN_ERR;
    case REASON_WORK_UNSUPPORTED:
    case REASON_READS_DISABLED:
        return IBV_WC_LOC_QP_OP_ERR;
    default:
        return IBV_WC_LOC_PROT_ERR;
    }
}

static bool goes_by_reference(const struct rc *rc, const struct send_wqe *work)
{
    return rc->settings.reference_segment && work->length >= rc->settings.reference_from &&
           !(work->flags & IBV_SEND_INLINE);
}

void request_measure(const struct rc *rc, struct send_wqe *work)
{
    enum request_class class = request_kind(work)->class;
    bool carries_message = class == REQUEST_SEND || class == REQUEST_WRITE;
    work->segment = rc->settings.segment;
    if (carries_message && !rc->settings.in_pieces && goes_by_reference(rc, work))
        work->segment = rc->settings.reference_segment;
    work->packets = class >= REQUEST_ATOMIC ? 1 : request_packets(work->length, work->segment);
    work->stride = rc->requester.congestion.adapts ? rc->requester.congestion.window : work->packets;
}

enum operation request_operation(const struct request_kind *kind, uint32_t index, bool last)
{
    if (index == 0)
        return last ? kind->only : kind->first;
    return last ? kind->last : kind->middle;
}

/* Long messages ask for an ACK some times within each window, so that the window never runs empty. */
static bool wants_ack(const struct rc *rc, uint32_t index, bool last)
{
    return last || (index + 1) % (rc->requester.congestion.window / 4 + 1) == 0;
}

uint32_t request_stride_end(const struct send_wqe *work, uint32_t index)
{
    uint32_t left = work->packets - index, stride = work->stride - index % work->stride;
    return index + (left < stride ? left : stride);
}

/* `index` is the first packet of the response to come: a repeated READ asks only for what is still missing (9.4.4), and
 * for no more than the one that it repeats. */
static enum reason build_read(const struct send_wqe *work, uint32_t index, struct packet *out)
{
    uint32_t end = request_stride_end(work, index), start = index * work->segment;
    out->address += start;
    out->length = (end == work->packets ? work->length : end * work->segment) - start;
    return REASON_NONE;
}

static enum reason build_atomic(const struct send_wqe *work, struct packet *out)
{
    out->compare = work->compare_or_add;
    out->swap_or_add = work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? work->swap : work->compare_or_add;
    return REASON_NONE;
}

static enum reason build_flush(const struct send_wqe *work, struct packet *out)
{
    out->length = (uint32_t)work->compare_or_add;
    out->placement = work->swap & 15;
    out->selectivity = work->swap >> 8 & 3;
    return REASON_NONE;
}

static bool was_sent(const struct rc *rc, uint32_t psn)
{
    return psn_distance(psn, rc->requester.sent_psn) < 0;
}

static enum reason build_message(const struct rc *rc, const struct send_wqe *work, uint32_t index, struct packet *out,
                                 struct iovec *pieces)
{
    bool last = index + 1 == work->packets;
    uint32_t offset = index * work->segment;
    out->ack_requested = wants_ack(rc, index, last);
    out->solicited = last && work->flags & IBV_SEND_SOLICITED;
    out->payload.by_reference = work->segment == rc->settings.reference_segment && goes_by_reference(rc, work);
    if (work->packets == 1 && !out->payload.by_reference)
        out->ack_requested = was_sent(rc, work->first_psn) || request_asks(rc, work, work->first_psn);
    return request_payload(rc->owner, work, offset, last ? work->length - offset : work->segment, out, pieces);
}

enum reason request_build(const struct rc *rc, const struct send_wqe *work, uint32_t index, struct packet *out,
                          struct iovec *pieces)
{
    const struct request_kind *kind = request_kind(work);
    enum operation operation = request_operation(kind, index, index + 1 == work->packets);
    bth_write(rc, out, operation, psn_add(work->first_psn, index));
    request_operands(out, work);
    out->ack_requested = true;
    switch (kind->class) {
    case REQUEST_READ:
        return build_read(work, index, out);
    case REQUEST_FLUSH:
        return build_flush(work, out);
    case REQUEST_ATOMIC:
        return build_atomic(work, out);
    case REQUEST_ATOMIC_WRITE:
        out->length = ATOMIC_LENGTH;
        return request_payload(rc->owner, work, 0, ATOMIC_LENGTH, out, pieces);
    default:
        return build_message(rc, work, index, out, pieces);
    }
}
