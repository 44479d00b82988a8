#include "record/recorded.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/container.h"
#include "base/likely.h"
#include "base/read_clock.h"
#include "record/record.h"
#include "record/recorder.h"
#include "wire/grh.h"
#include "wire/lrh.h"
#include "wire/wire.h"

enum { PAYLOAD_KEPT = 4096 /* the most bytes of a packet's payload that are recorded */, ROOM_AT_FIRST = 1024 };

struct recorded {
    struct engine_owner owner; /* the engine's owner, which forwards all calls to `real` */
    struct engine *engine;
    struct engine_owner *real;
    const uint32_t *number;
    uint32_t process, queue;
    uint32_t posted;               /* position in the send queue after the last POST */
    const struct payload *payload; /* of the packet that the engine is taking, as it arrived */
    uint8_t *buffer;               /* records of the present call of a door */
    size_t used, room;
    bool lacking;  /* there was no memory for records, so the recording of this queue pair has ended */
    bool datagram; /* UD: work requests have a destination; in those of other services these fields are not set */
};

static inline struct recorded *recorded_of(struct engine_owner *owner)
{
    return container_of(owner, struct recorded, owner);
}

/* ---- records ---- */

/* Makes room for this many bytes more; NULL: no memory. */
static uint8_t *reserve(struct recorded *recorded, size_t bytes)
{
    if (recorded->lacking)
        return NULL;
    size_t room = recorded->room ? recorded->room : ROOM_AT_FIRST;
    while (room - recorded->used < bytes)
        room *= 2;
    uint8_t *buffer = room == recorded->room ? recorded->buffer : realloc(recorded->buffer, room);
    if (!buffer) {
        recorded->lacking = true;
        return NULL;
    }
    recorded->buffer = buffer;
    recorded->room = room;
    return buffer + recorded->used;
}

cold static void put_record(struct recorded *recorded, struct record *record)
{
    record->process = recorded->process;
    record->queue = recorded->queue;
    uint8_t *to = reserve(recorded, record_size(record->kind, record->length));
    if (to)
        recorded->used += record_write(record, to);
}

/* Adds a record; the first one of a call is preceded by a TIME record. */
cold static void add_record(struct recorded *recorded, struct record *record)
{
    if (!recorded->used)
        put_record(recorded, &(struct record){.kind = RECORD_TIME, .TIME.now = read_clock(CLOCK_MONOTONIC)});
    put_record(recorded, record);
}

#define ADD_BYTES(recorded, what, data, size, ...)                                                                     \
    add_record(recorded, &(struct record){.kind = RECORD_##what,                                                       \
                                          .what = {__VA_ARGS__},                                                       \
                                          .bytes = (const void *)(data),                                               \
                                          .length = (uint32_t)(size)})
#define ADD(recorded, what, ...) ADD_BYTES(recorded, what, NULL, 0, __VA_ARGS__)

static void add_post(struct recorded *recorded, uint32_t position)
{
    const struct send_wqe *work = send_queue_at(engine_queue(recorded->engine), position);
    bool inlined = work->flags & IBV_SEND_INLINE;
    const void *bytes = inlined ? (const void *)work->inline_data : work->sge;
    size_t length = inlined ? work->length : work->sge_count * sizeof *work->sge;
    bool to = recorded->datagram;
    ADD_BYTES(recorded, POST, bytes, length, .position = position, .id = work->id, .opcode = work->opcode,
              .flags = work->flags, .sges = work->sge_count, .length = work->length, .immediate = work->immediate,
              .rkey = work->rkey, .remote_address = work->remote_address, .compare_or_add = work->compare_or_add,
              .swap = work->swap, .has_address = to && work->address, .remote_qp = to ? work->remote_qp : 0,
              .remote_qkey = to ? work->remote_qkey : 0, .remote_srq = work->remote_srq,
              .owner_value = work->owner_value);
}

/* Records posted work at the next door, as a program's batch enters the send queue without one. */
static void add_posts(struct recorded *recorded)
{
    const struct send_queue *queue = engine_queue(recorded->engine);
    for (; recorded->posted != queue->tail; recorded->posted++)
        add_post(recorded, recorded->posted);
}

static void leave_door(struct recorded *recorded)
{
    if (recorded->used && !recorded->lacking)
        recorder_append(recorded->buffer, recorded->used);
    recorded->used = 0;
}

#define ENTER(recorded, door, ...) (add_posts(recorded), ADD(recorded, door, __VA_ARGS__))

/* ---- packets ---- */

static size_t outer_length(const struct packet *packet)
{
    return packet->lrh ? LRH_LENGTH : packet->grh ? GRH_LENGTH : 0;
}

static void add_packet(struct recorded *recorded, enum record_kind kind, const struct packet *packet, nanos now)
{
    uint8_t bytes[1 + WIRE_HEADERS_MAX + GRH_LENGTH + PAYLOAD_KEPT];
    size_t used = 1, outer = outer_length(packet);
    uint32_t kept = packet->payload.length < PAYLOAD_KEPT ? packet->payload.length : PAYLOAD_KEPT;
    used += bytes[0] = (uint8_t)wire_encode(packet, bytes + 1);
    if (outer)
        memcpy(bytes + used, packet->lrh ? packet->lrh : packet->grh, outer);
    used += outer;
    bool plain = packet->payload.count != PAYLOAD_STORES; /* otherwise the engine alone knows where the bytes are */
    if (plain && kept && payload_copy(&packet->payload, 0, &(struct iovec){bytes + used, kept}, 1))
        used += kept;
    add_record(recorded, &(struct record){.kind = kind,
                                          .RECEIVE = {.now = now,
                                                      .payload = packet->payload.length,
                                                      .by_reference = packet->payload.by_reference,
                                                      .outer = outer},
                                          .bytes = bytes,
                                          .length = (uint32_t)used});
}

/* The `pull` of a packet's payload: stores bytes, and records how many. */
static bool store(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct recorded *recorded = payload->source;
    bool stored = payload_copy(recorded->payload, offset, to, count);
    uint64_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += to[i].iov_len;
    ADD(recorded, STORE, offset, length, stored, stored || payload_can_land(to, count));
    return stored;
}

/* Returns the same packet with a payload whose `pull` records what is stored. */
static struct packet watched(struct recorded *recorded, const struct packet *packet)
{
    struct packet same = *packet;
    recorded->payload = &packet->payload;
    if (packet->payload.length)
        same.payload = (struct payload){.length = packet->payload.length,
                                        .count = PAYLOAD_STORES,
                                        .by_reference = packet->payload.by_reference,
                                        .pull = store,
                                        .source = recorded};
    return same;
}

/* ---- the owner ---- */

#define REAL(owner) (recorded_of(owner)->real)
#define CALL(owner, operation, ...) REAL(owner)->operations->operation(REAL(owner), ##__VA_ARGS__)

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    ADD(recorded_of(owner), SENT, work->id, work->opcode, status, reason);
    CALL(owner, sent, work, status, reason);
}

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct packet original = *packet;
    original.payload = *recorded_of(owner)->payload;
    const struct recv_wqe *receive = CALL(owner, take_receive, packet->payload.length ? &original : packet, least);
    unsigned found = !receive                        ? RECEIVE_NONE
                     : receive == &receive_too_short ? RECEIVE_TOO_SHORT
                     : receive == &receive_unfetched ? RECEIVE_UNFETCHED
                                                     : RECEIVE_FOUND;
    if (found == RECEIVE_FOUND)
        ADD_BYTES(recorded_of(owner), TAKE_RECEIVE, receive->sge, receive->sge_count * sizeof *receive->sge,
                  .least = least, .found = found, .id = receive->id, .sges = receive->sge_count, .skip = receive->skip,
                  .limit = receive->limit);
    else
        ADD(recorded_of(owner), TAKE_RECEIVE, least, found);
    return receive;
}

static void on_return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    ADD(recorded_of(owner), RETURN_RECEIVE, receive->id);
    CALL(owner, return_receive, receive);
}

static enum reason on_select_srq(struct engine_owner *owner, uint32_t number)
{
    enum reason reason = CALL(owner, select_srq, number);
    ADD(recorded_of(owner), SELECT_SRQ, number, reason);
    return reason;
}

static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    ADD(recorded_of(owner), RECEIVED, .id = receive->id, .status = arrival->status, .reason = arrival->reason,
        .opcode = arrival->opcode, .length = arrival->length, .flags = arrival->flags,
        .immediate = arrival->immediate_or_key, .solicited = arrival->solicited, .source = arrival->source);
    struct recv_cqe original = *arrival;
    struct packet last;
    if (arrival->packet && arrival->packet->payload.length) {
        last = *arrival->packet;
        last.payload = *recorded_of(owner)->payload;
        original.packet = &last;
    }
    CALL(owner, received, receive, &original);
}

static enum reason on_local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                   struct iovec *out)
{
    enum reason reason = CALL(owner, local_memory, sge, access, out);
    ADD(recorded_of(owner), LOCAL_MEMORY, sge->addr, sge->length, sge->lkey, access, reason);
    return reason;
}

static enum reason on_receive_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                     struct iovec *out)
{
    enum reason reason = CALL(owner, receive_memory, sge, access, out);
    ADD(recorded_of(owner), RECEIVE_MEMORY, sge->addr, sge->length, sge->lkey, access, reason);
    return reason;
}

static enum reason on_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                    unsigned access, struct iovec *out)
{
    enum reason reason = CALL(owner, remote_memory, rkey, address, length, access, out);
    ADD(recorded_of(owner), REMOTE_MEMORY, rkey, address, length, access, reason);
    return reason;
}

static enum reason on_invalidate(struct engine_owner *owner, uint32_t rkey)
{
    enum reason reason = CALL(owner, invalidate, rkey);
    ADD(recorded_of(owner), INVALIDATE, rkey, reason);
    return reason;
}

static enum ibv_wc_status on_local_operation(struct engine_owner *owner, const struct send_wqe *work,
                                             enum reason *reason)
{
    enum ibv_wc_status status = CALL(owner, local_operation, work, reason);
    ADD(recorded_of(owner), LOCAL_OPERATION, work->id, work->opcode, status, *reason);
    return status;
}

static void on_failed(struct engine_owner *owner, bool sqe)
{
    ADD(recorded_of(owner), FAILED, sqe);
    CALL(owner, failed, sqe);
}

static void on_event(struct engine_owner *owner, enum ibv_event_type event)
{
    ADD(recorded_of(owner), EVENT, event);
    CALL(owner, event, event);
}

static void on_watch(struct engine_owner *owner, nanos deadline)
{
    ADD(recorded_of(owner), WATCH_BY, deadline);
    CALL(owner, watch, deadline);
}

static void on_note(struct engine_owner *owner, enum event event, uint64_t a, uint64_t b)
{
    ADD(recorded_of(owner), NOTE, event, a, b);
    owner_note(REAL(owner), event, a, b);
}

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    ADD(recorded_of(owner), DROPPED, packet->opcode, packet->psn, reason);
    CALL(owner, dropped, packet, reason);
}

static const struct owner_operations operations = {RECORD_OPERATIONS};
static const struct owner_operations operations_of_xrc = {RECORD_OPERATIONS, .select_srq = on_select_srq};

/* ---- the doors ---- */

struct recorded *recorded_begin(struct engine *engine, struct engine_owner *real, const uint32_t *number)
{
    struct recorded *recorded = calloc(1, sizeof *recorded);
    if (!recorded)
        return NULL;
    recorded->engine = engine;
    recorded->real = real;
    recorded->number = number;
    recorded->process = (uint32_t)getpid();
    recorded->queue = recorder_next_queue();
    return recorded;
}

void recorded_end(struct recorded *recorded)
{
    if (!recorded)
        return;
    ADD(recorded, DESTROY, 0);
    leave_door(recorded);
    free(recorded->buffer);
    free(recorded);
}

static struct engine_owner *recorded_owner(struct recorded *recorded)
{
    recorded->owner.operations = recorded->real->operations->select_srq ? &operations_of_xrc : &operations;
    return &recorded->owner;
}

void recorded_create(struct recorded *recorded, enum service service, const struct send_queue *queue)
{
    recorded->datagram = service == SERVICE_UD;
    ADD(recorded, CREATE, service, queue->stride, queue->capacity);
    engine_initialize(recorded->engine, service, recorded_owner(recorded), queue, NULL);
    leave_door(recorded);
}

void recorded_posted(struct recorded *recorded)
{
    ENTER(recorded, POSTED, engine_queue(recorded->engine)->tail);
    engine_posted(recorded->engine);
    leave_door(recorded);
}

void recorded_receive(struct recorded *recorded, const struct packet *packet, nanos now)
{
    struct packet same = watched(recorded, packet);
    add_posts(recorded);
    add_packet(recorded, RECORD_RECEIVE, packet, now);
    engine_receive(recorded->engine, &same, now);
    leave_door(recorded);
}

void recorded_hear_response(struct recorded *recorded, const struct packet *packet)
{
    recorded->payload = &packet->payload;
    add_posts(recorded);
    add_packet(recorded, RECORD_HEAR, packet, 0);
    engine_hear_response(recorded->engine, packet);
    leave_door(recorded);
}

nanos recorded_watch(struct recorded *recorded)
{
    ENTER(recorded, WATCH, 0);
    nanos deadline = engine_watch(recorded->engine);
    ADD(recorded, WATCHED, deadline);
    leave_door(recorded);
    return deadline;
}

bool recorded_transmit(struct recorded *recorded, struct packet *out, struct iovec *pieces, nanos now)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    ENTER(recorded, TRANSMIT, now);
    bool transmits = engine_transmit(recorded->engine, out, pieces, now);
    if (transmits)
        ADD_BYTES(recorded, TRANSMITTED, headers, wire_encode(out, headers), out->payload.length);
    else
        ADD(recorded, NOTHING);
    leave_door(recorded);
    return transmits;
}

const struct send_wqe *recorded_next_datagram(struct recorded *recorded)
{
    ENTER(recorded, NEXT_DATAGRAM, 0);
    const struct send_wqe *work = engine_next_datagram(recorded->engine);
    if (work)
        ADD(recorded, NEXT, work->id);
    else
        ADD(recorded, NOTHING);
    leave_door(recorded);
    return work;
}

void recorded_configure(struct recorded *recorded, const struct engine_settings *settings)
{
#define PUT(field) .field = (uint64_t)settings->field,
    ENTER(recorded, CONFIGURE, SETTINGS_FIELDS(PUT).number_of_qp = *recorded->number);
#undef PUT
    engine_configure(recorded->engine, settings);
    leave_door(recorded);
}

void recorded_keep_responses(struct recorded *recorded, struct responder_resource *saved, uint32_t count)
{
    ENTER(recorded, KEEP_RESPONSES, saved ? count : 0);
    engine_keep_responses(recorded->engine, saved);
    leave_door(recorded);
}

void recorded_reset(struct recorded *recorded)
{
    ENTER(recorded, RESET, 0);
    engine_reset(recorded->engine);
    recorded->posted = engine_queue(recorded->engine)->tail;
    leave_door(recorded);
}

struct engine_position recorded_lend(struct recorded *recorded)
{
    ENTER(recorded, LEND, 0);
    struct engine_position position = engine_lend(recorded->engine);
    ADD(recorded, LENT, position.expected_psn, position.msn, position.nak_sent);
    leave_door(recorded);
    return position;
}

#define NUMBERS(...) __VA_ARGS__
#define SELF struct recorded *recorded
#define DOOR_NOTED(name, record, service, parameters, numbers, ...)                                                    \
    void recorded_##name parameters                                                                                    \
    {                                                                                                                  \
        ENTER(recorded, record, NUMBERS numbers);                                                                      \
        engine_##name(recorded->engine, ##__VA_ARGS__);                                                                \
        leave_door(recorded);                                                                                          \
    }
#define DOOR(...)
#include "transport/engine/doors.def"

void recorded_acknowledge_late(struct recorded *recorded)
{
    ENTER(recorded, ACKNOWLEDGE_LATE, 0);
    engine_acknowledge_late(recorded->engine);
    leave_door(recorded);
}
