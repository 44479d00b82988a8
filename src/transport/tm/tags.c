#include "transport/tm/tags.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/op.h"

enum { BACKLOG_MOST = 1 << 15 }; /* unexpected messages that software may leave unreported before it is asked */

/* The part of an entry that a search doesn't need. */
struct buffer {
    struct recv_wqe receive; /* of an eager message, or of the rendezvous' request */
    uint64_t id;
    uint64_t room;
    struct tags_queue *queue; /* the queue that the rendezvous is in, or NULL */
    uint32_t next, previous;  /* in that queue */
    bool solicited, finishing;
    bool told; /* the match was reported early: the message has more packets, or its bytes arrive later */
    uint32_t sge_count;
    uint8_t head[TAGS_HEAD]; /* TMH and RVH of the request */
    struct ibv_sge sge[];
};

enum { TMH_TAG = 8, TMH_APPLICATION = 4, RVH_ADDRESS = 16, RVH_KEY = 24, RVH_LENGTH = 28 };

static struct buffer *buffer_of(const struct tags *tags, uint32_t entry)
{
    return (struct buffer *)(tags->buffers + entry * tags->stride);
}

static size_t stride(uint32_t sges_max)
{
    return (sizeof(struct buffer) + sges_max * sizeof(struct ibv_sge) + 63) & ~(size_t)63;
}

size_t tags_size(uint32_t capacity, uint32_t sges_max)
{
    return tag_list_size(capacity) + ((size_t)capacity + 1) * stride(sges_max);
}

void tags_initialize(struct tags *tags, void *memory, uint32_t capacity, uint32_t sges_max)
{
    memset(tags, 0, sizeof(*tags));
    tag_list_initialize(&tags->list, memory, capacity);
    tags->buffers = (char *)memory + tag_list_size(capacity);
    tags->stride = stride(sges_max);
    tags->sges_max = sges_max;
    tags->enabled_before = UINT64_MAX;
}

/* -- the phase */

static bool is_in_phase(const struct tags *tags)
{
    return tags->delivered == tags->handled;
}

/* Enables all entries if both sides have seen the same messages: no posted entry can overtake a message any more. */
static void enable_if_in_phase(struct tags *tags)
{
    if (!is_in_phase(tags))
        return;
    tags->disabled = 0;
    tags->enabled_before = UINT64_MAX;
}

static void report(struct tags *tags, const struct ibv_ops_wr *wr)
{
    if (wr->flags & IBV_OPS_TM_SYNC)
        tags->handled = (uint16_t)wr->tm.unexpected_cnt;
    enable_if_in_phase(tags);
}

static bool is_disabled(const struct tags *tags, uint32_t entry)
{
    return tags->list.entries[entry].sequence >= tags->enabled_before;
}

/* -- operations */

static void copy_buffer(struct buffer *buffer, const struct ibv_ops_wr *wr)
{
    buffer->id = wr->tm.add.recv_wr_id;
    buffer->queue = 0;
    buffer->room = 0;
    buffer->sge_count = (uint32_t)wr->tm.add.num_sge;
    for (uint32_t i = 0; i < buffer->sge_count; i++) {
        buffer->sge[i] = wr->tm.add.sg_list[i];
        buffer->room += buffer->sge[i].length;
    }
}

static enum reason tags_add(struct tags *tags, struct ibv_ops_wr *wr)
{
    uint32_t entry = tag_list_allocate(&tags->list);
    if (!entry)
        return REASON_TM_LIST_FULL;
    copy_buffer(buffer_of(tags, entry), wr);
    tag_list_insert(&tags->list, entry, wr->tm.add.tag, wr->tm.add.mask);
    report(tags, wr);
    if (!is_in_phase(tags) && !tags->disabled++)
        tags->enabled_before = tags->list.entries[entry].sequence;
    wr->tm.handle = tag_list_handle(&tags->list, entry);
    return REASON_NONE;
}

/* REASON_TM_HANDLE: no entry of that handle is waiting. All entries after a disabled one are disabled, too, so
 * enabled_before may stay the number of the deleted entry. */
static enum reason delete_entry(struct tags *tags, const struct ibv_ops_wr *wr)
{
    uint32_t entry = tag_list_by_handle(&tags->list, wr->tm.handle);
    bool waits = entry && tag_list_holds(&tags->list, entry);
    if (waits) {
        if (is_disabled(tags, entry) && !--tags->disabled)
            tags->enabled_before = UINT64_MAX;
        tag_list_remove(&tags->list, entry);
        tag_list_free(&tags->list, entry);
    }
    report(tags, wr);
    return waits ? REASON_NONE : REASON_TM_HANDLE;
}

static enum ibv_wc_opcode operation_opcode(const struct ibv_ops_wr *wr)
{
    return wr->opcode == IBV_WR_TAG_ADD ? IBV_WC_TM_ADD : wr->opcode == IBV_WR_TAG_DEL ? IBV_WC_TM_DEL : IBV_WC_TM_SYNC;
}

enum reason tags_check(const struct tags *tags, const struct ibv_ops_wr *wr)
{
    if (wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC))
        return REASON_TM_FLAGS;
    if (wr->opcode != IBV_WR_TAG_ADD && wr->opcode != IBV_WR_TAG_DEL && wr->opcode != IBV_WR_TAG_SYNC)
        return REASON_TM_OPCODE;
    bool too_many = wr->tm.add.num_sge < 0 || (uint32_t)wr->tm.add.num_sge > tags->sges_max;
    return wr->opcode == IBV_WR_TAG_ADD && too_many ? REASON_TM_SGES : REASON_NONE;
}

enum reason tags_operate(struct tags *tags, struct ibv_ops_wr *wr, struct tags_event *event, bool *completes)
{
    enum reason reason = tags_check(tags, wr);
    *completes = false;
    if (reason)
        return reason;
    if (wr->opcode == IBV_WR_TAG_ADD)
        reason = tags_add(tags, wr);
    else if (wr->opcode == IBV_WR_TAG_DEL)
        reason = delete_entry(tags, wr);
    else
        report(tags, wr);
    bool failed = reason == REASON_TM_HANDLE;
    if (reason && !failed)
        return reason;
    /* an error is reported even if no completion was requested, as for every work request */
    *completes = failed || wr->flags & IBV_OPS_SIGNALED;
    *event = (struct tags_event){
        .id = wr->wr_id,
        .status = failed ? IBV_WC_TM_ERR : IBV_WC_SUCCESS,
        .reason = reason,
        .opcode = operation_opcode(wr),
        .flags = is_in_phase(tags) ? 0 : IBV_WC_TM_SYNC_REQ,
        .notable = failed,
    };
    return REASON_NONE;
}

/* -- arrival */

struct head {
    uint8_t bytes[TAGS_HEAD];
    uint32_t length;
};

/* A message that is too long for a rendezvous' request has a TMH at most, whose bytes are sent along with the reference
 * to the other bytes, so that the sender's memory is read once. */
static uint32_t head_length(uint32_t payload_length)
{
    uint32_t most = payload_length > TAGS_RENDEZVOUS_MAX ? TAGS_TMH : TAGS_HEAD;
    return payload_length < most ? payload_length : most;
}

static bool fetch_head(const struct packet *packet, struct head *head)
{
    head->length = head_length(packet->payload.length);
    struct iovec to = {head->bytes, head->length};
    return !head->length || payload_copy(&packet->payload, 0, &to, 1);
}

/* TAGS_UNEXPECTED: the message carries a tag. A FIN is for software, as is a header that can't be understood. */
static enum tags_kind classify(const struct packet *packet, const struct head *head)
{
    bool whole = op_find(packet->opcode)->flags & OP_END, has_tag = head->length >= TAGS_TMH;
    if (head->length && head->bytes[0] == IBV_TMH_NO_TAG)
        return TAGS_NO_TAG; /* such a header has only the operation */
    if (has_tag && head->bytes[0] == IBV_TMH_FIN)
        return TAGS_NO_TAG;
    if (has_tag && head->bytes[0] == IBV_TMH_EAGER)
        return TAGS_UNEXPECTED;
    if (head->length == TAGS_HEAD && head->bytes[0] == IBV_TMH_RNDV && whole &&
        packet->payload.length <= TAGS_RENDEZVOUS_MAX)
        return TAGS_UNEXPECTED;
    return TAGS_MALFORMED;
}

/* The rendezvous' request itself is stored in the buffer only if software must continue from it. */
static enum tags_kind prepare_rendezvous(struct buffer *buffer, const struct head *head)
{
    memcpy(buffer->head, head->bytes, TAGS_HEAD);
    bool fits = bytes_get32(head->bytes + RVH_LENGTH) <= buffer->room;
    if (fits || !buffer->room) {
        buffer->receive.sge_count = 0;
        buffer->receive.skip = TAGS_RENDEZVOUS_MAX;
        return fits ? TAGS_RENDEZVOUS : TAGS_INCOMPLETE;
    }
    buffer->receive.skip = 0;
    buffer->receive.limit = buffer->room < TAGS_HEAD ? (uint32_t)buffer->room : TAGS_HEAD;
    return TAGS_INCOMPLETE;
}

static enum tags_kind take_entry(struct tags *tags, struct tags_port *port, uint32_t entry, const struct head *head)
{
    struct buffer *buffer = buffer_of(tags, entry);
    tag_list_remove(&tags->list, entry);
    tags->matched++;
    buffer->receive =
        (struct recv_wqe){.id = buffer->id, .sge = buffer->sge, .sge_count = buffer->sge_count, .skip = TAGS_TMH};
    memcpy(buffer->head, head->bytes, TAGS_TMH);
    buffer->told = false;
    port->entry = entry;
    return head->bytes[0] == IBV_TMH_RNDV ? prepare_rendezvous(buffer, head) : TAGS_EAGER;
}

enum tags_kind tags_arrive(struct tags *tags, struct tags_port *port, const struct packet *packet)
{
    struct head head;
    if (!(op_find(packet->opcode)->flags & OP_SEND))
        return TAGS_PLAIN;
    if (!fetch_head(packet, &head))
        return TAGS_NOTHING;
    enum tags_kind kind = classify(packet, &head);
    if (kind != TAGS_UNEXPECTED)
        return kind;
    uint32_t entry = tag_list_find(&tags->list, bytes_get64(head.bytes + TMH_TAG), tags->enabled_before);
    if (!entry)
        return TAGS_UNEXPECTED;
    port->open = take_entry(tags, port, entry, &head);
    return port->open;
}

void tags_accept(struct tags *tags, struct tags_port *port, enum tags_kind kind)
{
    port->open = kind;
    tags->delivered += kind == TAGS_UNEXPECTED;
}

const struct recv_wqe *tags_receive(const struct tags *tags, const struct tags_port *port)
{
    return port->entry ? &buffer_of(tags, port->entry)->receive : 0;
}

/* -- the end of a message */

static void append(struct tags *tags, struct tags_queue *queue, uint32_t entry)
{
    struct buffer *buffer = buffer_of(tags, entry);
    buffer->queue = queue;
    buffer->next = 0;
    buffer->previous = queue->last;
    if (queue->last)
        buffer_of(tags, queue->last)->next = entry;
    else
        queue->first = entry;
    queue->last = entry;
}

static void unlink_entry(struct tags *tags, uint32_t entry)
{
    struct buffer *buffer = buffer_of(tags, entry);
    struct tags_queue *queue = buffer->queue;
    if (buffer->previous)
        buffer_of(tags, buffer->previous)->next = buffer->next;
    else
        queue->first = buffer->next;
    if (buffer->next)
        buffer_of(tags, buffer->next)->previous = buffer->previous;
    else
        queue->last = buffer->previous;
    buffer->queue = 0;
}

static void tell_match(const struct buffer *buffer, struct tags_event *event)
{
    event->flags |= IBV_WC_TM_MATCH;
    event->tag = bytes_get64(buffer->head + TMH_TAG);
    event->application = bytes_get32(buffer->head + TMH_APPLICATION);
}

bool tags_match_early(struct tags *tags, const struct tags_port *port, struct tags_event *event)
{
    if (port->open != TAGS_EAGER || buffer_of(tags, port->entry)->told)
        return false;
    struct buffer *buffer = buffer_of(tags, port->entry);
    *event = (struct tags_event){.id = buffer->id, .opcode = IBV_WC_TM_RECV};
    tell_match(buffer, event);
    return buffer->told = true;
}

bool tags_match(struct tags *tags, const struct tags_port *port, const struct packet *packet, struct tags_event *event)
{
    return !(op_find(packet->opcode)->flags & OP_END) && tags_match_early(tags, port, event);
}

static void begin_rendezvous(struct tags *tags, struct tags_port *port, uint32_t entry, bool solicited)
{
    struct buffer *buffer = buffer_of(tags, entry);
    buffer->solicited = solicited;
    buffer->finishing = !bytes_get32(buffer->head + RVH_LENGTH); /* nothing to be read */
    append(tags, buffer->finishing ? &port->to_finish : &port->to_read, entry);
}

/* A message for an ordinary receive has ended. When its queue pair died within it, software will never count it. */
static void end_untagged(struct tags *tags, enum tags_kind kind, struct tags_event *event)
{
    if (kind == TAGS_NO_TAG || kind == TAGS_MALFORMED)
        event->opcode = IBV_WC_TM_NO_TAG;
    if (kind == TAGS_MALFORMED && event->status == IBV_WC_SUCCESS)
        event->reason = REASON_TM_MALFORMED;
    if (kind != TAGS_UNEXPECTED)
        return;
    event->opcode = IBV_WC_TM_RECV;
    if (event->status != IBV_WC_SUCCESS) {
        tags->delivered--;
        enable_if_in_phase(tags);
    } else if ((uint16_t)(tags->delivered - tags->handled) > BACKLOG_MOST)
        event->flags |= IBV_WC_TM_SYNC_REQ;
}

static void end_tagged(struct tags *tags, struct tags_port *port, enum tags_kind kind, bool solicited,
                       struct tags_event *event)
{
    uint32_t entry = port->entry;
    struct buffer *buffer = buffer_of(tags, entry);
    bool succeeded = event->status == IBV_WC_SUCCESS;
    port->entry = 0;
    event->id = buffer->id;
    event->opcode = IBV_WC_TM_RECV;
    if (succeeded && !buffer->told)
        tell_match(buffer, event);
    if (succeeded && kind == TAGS_RENDEZVOUS) {
        event->length = 0;
        begin_rendezvous(tags, port, entry, solicited);
        return;
    }
    if (succeeded && kind == TAGS_EAGER) {
        event->length -= TAGS_TMH;
        event->flags |= IBV_WC_TM_DATA_VALID;
    } else if (succeeded) {
        event->length = buffer->receive.limit;
        event->status = IBV_WC_TM_RNDV_INCOMPLETE;
        event->reason = REASON_TM_INCOMPLETE;
        event->notable = true;
    }
    tag_list_free(&tags->list, entry);
}

void tags_received(struct tags *tags, struct tags_port *port, uint64_t id, const struct recv_cqe *arrival,
                   struct tags_event *event)
{
    enum tags_kind kind = port->open;
    port->open = TAGS_NOTHING;
    *event = (struct tags_event){
        .id = id,
        .status = arrival->status,
        .reason = arrival->reason,
        .opcode = arrival->opcode,
        .flags = arrival->flags,
        .length = arrival->length,
        .immediate_or_key = arrival->immediate_or_key,
        .notable = arrival->solicited || arrival->status != IBV_WC_SUCCESS,
    };
    if (port->entry)
        end_tagged(tags, port, kind, arrival->solicited, event);
    else
        end_untagged(tags, kind, event);
}

/* -- rendezvous */

static void fill_read(const struct buffer *buffer, struct send_wqe *work)
{
    uint32_t left = bytes_get32(buffer->head + RVH_LENGTH);
    work->opcode = IBV_WR_RDMA_READ;
    work->flags = WORK_INTO_RECEIVE;
    work->length = left;
    work->remote_address = bytes_get64(buffer->head + RVH_ADDRESS);
    work->rkey = bytes_get32(buffer->head + RVH_KEY);
    work->sge_count = 0;
    for (uint32_t i = 0; left; i++) {
        struct ibv_sge *sge = &work->sge[work->sge_count++];
        *sge = buffer->sge[i];
        if (sge->length > left)
            sge->length = left;
        left -= sge->length;
    }
}

/* A FIN has the headers of the request, with another operation. The receive ends once the FIN is acknowledged, so the
 * FIN asks for an ACK. */
static void fill_finish(const struct buffer *buffer, struct send_wqe *work)
{
    work->opcode = IBV_WR_SEND;
    work->flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED | (buffer->solicited ? IBV_SEND_SOLICITED : 0);
    work->length = TAGS_HEAD;
    work->sge_count = 0;
    memcpy(work->inline_data, buffer->head, TAGS_HEAD);
    work->inline_data[0] = IBV_TMH_FIN;
}

bool tags_work(struct tags *tags, struct tags_port *port, struct send_wqe *work)
{
    uint32_t entry = port->to_finish.first ? port->to_finish.first : port->to_read.first;
    if (!entry)
        return false;
    struct buffer *buffer = buffer_of(tags, entry);
    unlink_entry(tags, entry);
    append(tags, &port->working, entry);
    work->id = buffer->id;
    work->owner_value = TAGS_WORK | entry;
    if (buffer->finishing)
        fill_finish(buffer, work);
    else
        fill_read(buffer, work);
    return true;
}

static void end_rendezvous(struct tags *tags, uint32_t entry, enum ibv_wc_status status, enum reason reason,
                           struct tags_event *event)
{
    struct buffer *buffer = buffer_of(tags, entry);
    bool succeeded = status == IBV_WC_SUCCESS;
    unlink_entry(tags, entry);
    *event = (struct tags_event){
        .id = buffer->id,
        .status = status,
        .reason = reason,
        .opcode = IBV_WC_TM_RECV,
        .flags = succeeded ? IBV_WC_TM_DATA_VALID : 0,
        .length = succeeded ? bytes_get32(buffer->head + RVH_LENGTH) : 0,
        .notable = buffer->solicited || !succeeded,
    };
    tag_list_free(&tags->list, entry);
}

bool tags_sent(struct tags *tags, struct tags_port *port, const struct send_wqe *work, enum ibv_wc_status status,
               enum reason reason, struct tags_event *event)
{
    uint32_t entry = work->owner_value & ~TAGS_WORK;
    struct buffer *buffer = buffer_of(tags, entry);
    if (status == IBV_WC_SUCCESS && !buffer->finishing) {
        buffer->finishing = true;
        unlink_entry(tags, entry);
        append(tags, &port->to_finish, entry);
        return false;
    }
    end_rendezvous(tags, entry, status, reason, event);
    return true;
}

bool tags_flush(struct tags *tags, struct tags_port *port, struct tags_event *event)
{
    uint32_t entry = port->working.first     ? port->working.first
                     : port->to_finish.first ? port->to_finish.first
                                             : port->to_read.first;
    if (entry)
        end_rendezvous(tags, entry, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED, event);
    return entry;
}

void tags_describe(const struct tags *tags, uint32_t entry, uint64_t *id, uint64_t *bytes)
{
    *id = buffer_of(tags, entry)->id;
    *bytes = buffer_of(tags, entry)->room;
}
