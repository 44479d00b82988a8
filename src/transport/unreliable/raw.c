#include "transport/unreliable/raw.h"

#include <string.h>

#include "base/container.h"
#include "transport/gather.h"
#include "transport/request.h"
#include "transport/retire.h"
#include "transport/scatter.h"
#include "transport/unreliable/raw_segment.h"
#include "wire/bytes.h"

static const struct packet no_packet;

/* ---- sending ---- */

static void raw_posted(struct unreliable *common)
{
    retire_all(&common->queue, common->owner);
}

static enum ibv_wc_status status_of(enum reason reason)
{
    switch (reason) {
    case REASON_RAW_TOO_SHORT:
        return IBV_WC_LOC_LEN_ERR;
    case REASON_RAW_TSO_HEADER:
        return IBV_WC_LOC_QP_OP_ERR;
    default:
        return request_status(reason);
    }
}

static enum reason copy_data(const struct raw *raw, const struct send_wqe *work, uint32_t offset, uint32_t length,
                             uint8_t *to)
{
    struct iovec pieces[PAYLOAD_PIECES_MAX], whole = {to, length};
    struct payload payload = {.length = length, .pieces = pieces};
    enum reason reason = gather(raw->common.owner, work, 0, offset, length, pieces, &payload.count);
    if (!reason && !payload_copy(&payload, 0, &whole, 1))
        reason = REASON_LOCAL_GONE;
    return reason;
}

static enum reason build_plain(const struct raw *raw, const struct send_wqe *work, uint8_t *frame, uint32_t *length)
{
    if (work->length < ETHER_HEADER)
        return REASON_RAW_TOO_SHORT;
    if (work->length > RAW_FRAME_MAX)
        return REASON_MESSAGE_TOO_LONG;
    *length = work->length;
    return copy_data(raw, work, 0, work->length, frame);
}

static enum reason build_segment(struct raw *raw, const struct send_wqe *work, uint8_t *frame, uint32_t *length)
{
    uint32_t header = (uint32_t)work->compare_or_add, most = (uint32_t)work->swap, left = work->length - raw->sent;
    if (!most)
        return REASON_RAW_TSO_HEADER;
    if (work->length > RAW_TSO_MAX || header + (uint64_t)most > RAW_FRAME_MAX)
        return REASON_MESSAGE_TOO_LONG;
    raw->segment = left < most ? left : most;
    *length = header + raw->segment;
    memcpy(frame, raw_tso_header(work), header);
    enum reason reason = copy_data(raw, work, raw->sent, raw->segment, frame + header);
    if (reason)
        return reason;
    bool right = raw_segment_head(frame, header, raw->segment, raw->sent, raw->sent / most, raw->segment == left);
    return right ? REASON_NONE : REASON_RAW_TSO_HEADER;
}

static enum reason build(struct raw *raw, const struct send_wqe *work, uint8_t *frame, uint32_t *length)
{
    if (work->opcode == IBV_WR_TSO)
        return build_segment(raw, work, frame, length);
    if (work->opcode != IBV_WR_SEND)
        return REASON_WORK_UNSUPPORTED;
    enum reason reason = build_plain(raw, work, frame, length);
    if (!reason && work->flags & IBV_SEND_IP_CSUM)
        ether_write_checksums(frame, *length);
    return reason;
}

bool raw_next(struct raw *raw, uint8_t frame[RAW_FRAME_MAX], uint32_t *length)
{
    while (unreliable_is_ready(&raw->common)) {
        const struct send_wqe *work = send_queue_at(&raw->common.queue, raw->common.queue.next);
        enum reason reason = build(raw, work, frame, length);
        if (!reason)
            return true;
        raw->sent = 0;
        if (!unreliable_end(&raw->common, work, status_of(reason), reason))
            return false;
        unreliable_settle(&raw->common);
    }
    return false;
}

void raw_sent(struct raw *raw)
{
    const struct send_wqe *work = send_queue_at(&raw->common.queue, raw->common.queue.next);
    if (work->opcode == IBV_WR_TSO) {
        raw->sent += raw->segment;
        raw->common.begun = raw->sent < work->length;
        if (raw->common.begun)
            return;
    }
    raw->sent = 0;
    raw->common.queue.next++;
    unreliable_settle(&raw->common);
}

/* ---- receiving ---- */

static void raw_flush(struct unreliable *common)
{
    container_of(common, struct raw, common)->sent = 0;
    unreliable_flush(common);
}

/* A frame as it is stored: the bytes before and after its tag, and the frame check sequence. */
struct image {
    struct iovec pieces[3];
    struct payload payload;
    uint8_t check[ETHER_FCS];
    bool stripped;
    uint16_t tag;
};

static void add_piece(struct image *image, const void *bytes, uint32_t length)
{
    image->pieces[image->payload.count++] = (struct iovec){(void *)(uintptr_t)bytes, length};
    image->payload.length += length;
}

static void make_image(const struct raw *raw, const struct ether *ether, struct image *image)
{
    enum { ADDRESSES = 12 };
    const uint8_t *bytes = ether->bytes;
    image->payload = (struct payload){.pieces = image->pieces};
    image->stripped = raw->common.settings.options & RAW_STRIP_VLAN && ether->length >= ETHER_HEADER + ETHER_TAG &&
                      bytes_get16(bytes + ADDRESSES) == ETHER_TYPE_VLAN;
    image->tag = image->stripped ? bytes_get16(bytes + ETHER_HEADER) : 0;
    uint32_t rest = image->stripped ? ADDRESSES + ETHER_TAG : 0;
    if (image->stripped)
        add_piece(image, bytes, ADDRESSES);
    add_piece(image, bytes + rest, ether->length - rest);
    if (raw->common.settings.options & RAW_STORE_FRAME_CHECK) {
        ether_frame_check(bytes, ether->length, image->check);
        add_piece(image, image->check, ETHER_FCS);
    }
}

/* Takes a receive. If the next one is too short for the frame, it stays for the next frame. */
static enum reason raw_take_receive(struct raw *raw, uint32_t length, const struct recv_wqe **receive)
{
    if (!raw->common.receiving || raw->common.failed)
        return REASON_PACKET_QP_STATE;
    *receive = raw->common.owner->operations->take_receive(raw->common.owner, &no_packet, length);
    if (!*receive)
        return REASON_PACKET_NO_RECEIVE;
    return *receive == &receive_too_short ? REASON_PACKET_TOO_LONG : REASON_NONE;
}

static void raw_accept(struct raw *raw, const struct recv_wqe *receive, const struct raw_frame *frame,
                       const struct image *image)
{
    const struct recv_cqe arrival = {
        .status = IBV_WC_SUCCESS,
        .opcode = IBV_WC_RECV,
        .length = image->payload.length,
        .flags = frame->checksums_hold ? IBV_WC_IP_CSUM_OK : 0,
        .flow_tag = frame->flow_tag,
        .cvlan = image->tag,
    };
    raw->common.owner->operations->received(raw->common.owner, receive, &arrival);
}

void raw_receive(struct raw *raw, const struct raw_frame *frame)
{
    const struct recv_wqe *receive;
    struct image image;
    make_image(raw, frame->ether, &image);
    enum reason reason = raw_take_receive(raw, image.payload.length, &receive);
    if (reason) {
        raw->common.owner->operations->dropped(raw->common.owner, &no_packet, reason);
        return;
    }
    reason = scatter(raw->common.owner, receive, 0, &image.payload);
    if (reason) {
        raw->sent = 0;
        unreliable_fail_receive(&raw->common, receive, IBV_WC_LOC_PROT_ERR, reason, NULL);
    } else {
        raw_accept(raw, receive, frame, &image);
    }
}

const struct unreliable_operations raw_operations = {
    .posted = raw_posted,
    .flush = raw_flush,
};
