#include "transport/rc/rc_request.h"

/* The most packets of a message: all its PSNs, and a full window before them, must be within half of the PSNs. */
static uint32_t most_packets(const struct rc *rc)
{
    uint32_t half = PSN_MASK / 2, window = rc->settings.window;
    return window < half ? half - window : 1;
}

enum reason rc_request_check(const struct rc *rc, const struct send_wqe *work)
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

static bool goes_by_reference(const struct rc *rc, const struct send_wqe *work)
{
    const struct engine_settings *settings = &rc->settings;
    return settings->reference_segment && !settings->in_pieces && work->length >= settings->reference_from &&
           !(work->flags & IBV_SEND_INLINE);
}

void rc_request_measure(const struct rc *rc, struct send_wqe *work)
{
    enum request_class class = request_kind(work)->class;
    bool carries_message = class == REQUEST_SEND || class == REQUEST_WRITE;
    work->by_reference = carries_message && goes_by_reference(rc, work);
    work->segment = work->by_reference ? rc->settings.reference_segment : rc->settings.segment;
    work->packets = class >= REQUEST_ATOMIC ? 1 : request_packets(work->length, work->segment);
    work->stride = rc->requester.congestion.adapts ? rc->requester.congestion.window : work->packets;
}

/* Long messages ask for several ACKs within each window, so that the window never runs empty. */
static bool wants_ack(const struct rc *rc, uint32_t index, bool last)
{
    return last || (index + 1) % (rc->requester.congestion.window / 4 + 1) == 0;
}

/* `index` is the response's first packet that is missing: a repeated READ asks only for the missing part (9.4.4), and
 * for no more than the first request asked for. */
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
    out->payload.by_reference = work->by_reference;
    if (work->packets == 1 && !work->by_reference)
        out->ack_requested = was_sent(rc, work->first_psn) || rc_request_asks(rc, work, work->first_psn);
    return request_payload(rc->owner, work, offset, last ? work->length - offset : work->segment, out, pieces);
}

enum reason rc_request_build(const struct rc *rc, const struct send_wqe *work, uint32_t index, struct packet *out,
                             struct iovec *pieces)
{
    const struct request_kind *kind = request_kind(work);
    enum operation operation = request_operation(kind, index, index + 1 == work->packets);
    bth_write(&rc->settings, out, operation, psn_add(work->first_psn, index));
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
