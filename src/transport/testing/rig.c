#include "transport/testing/rig.h"

#include <stdlib.h>
#include <string.h>

#include "transport/scatter.h"
#include "wire/psn.h"

static struct rig *rig_of(struct engine_owner *owner)
{
    return (struct rig *)owner;
}

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    struct rig *rig = rig_of(owner);
    if (rig->ended < sizeof(rig->ends) / sizeof(*rig->ends))
        rig->ends[rig->ended++] = (struct rig_end){work->id, work->opcode, status, reason};
}

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct rig *rig = rig_of(owner);
    uint8_t first;
    struct iovec to = {&first, 1};
    if (rig->looks_inside && !payload_copy(&packet->payload, 0, &to, 1))
        return &receive_unfetched;
    if (rig->taken == rig->posted)
        return NULL;
    const struct recv_wqe *receive = &rig->receives[rig->taken % RIG_QUEUE].receive;
    if (scatter_room(receive) < least)
        return &receive_too_short;
    rig->taken++;
    return receive;
}

static void on_return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    struct rig *rig = rig_of(owner);
    if (receive == &rig->receives[(rig->taken - 1) % RIG_QUEUE].receive)
        rig->taken--;
}

static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct rig *rig = rig_of(owner);
    if (rig->arrived < sizeof(rig->arrivals) / sizeof(*rig->arrivals))
        rig->arrivals[rig->arrived++] = (struct rig_arrival){receive->id, *arrival};
}

static enum reason find_memory(struct rig *rig, uint32_t key, uint64_t address, uint32_t length, unsigned access,
                               struct iovec *memory, enum reason unknown)
{
    rig->looked_up++;
    uint32_t shift = key == KEY_SHIFTED ? RIG_SHIFT : 0, size = RIG_MEMORY - shift;
    if (rig->deregistered || (key != KEY_ALL && key != KEY_NOTHING && key != KEY_SHIFTED))
        return unknown;
    if (length && (address > size || length > size - address))
        return unknown + (REASON_LOCAL_RANGE - REASON_LOCAL_KEY_UNKNOWN);
    if (access && key == KEY_NOTHING)
        return unknown + (REASON_LOCAL_PERMISSION - REASON_LOCAL_KEY_UNKNOWN);
    if (length)
        *memory = (struct iovec){rig->memory + shift + address, length};
    return REASON_NONE;
}

static enum reason on_local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                   struct iovec *memory)
{
    return find_memory(rig_of(owner), sge->lkey, sge->addr, sge->length, access, memory, REASON_LOCAL_KEY_UNKNOWN);
}

static enum reason on_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                    unsigned access, struct iovec *memory)
{
    return find_memory(rig_of(owner), rkey, address, length, access, memory, REASON_REMOTE_KEY_UNKNOWN);
}

static enum reason on_invalidate(struct engine_owner *owner, uint32_t rkey)
{
    if (rkey != KEY_ALL)
        return REASON_INVALIDATE_KEY;
    rig_of(owner)->invalidated = rkey;
    return REASON_NONE;
}

static enum reason on_select_srq(struct engine_owner *owner, uint32_t number)
{
    rig_of(owner)->srq = number;
    return number == RIG_NO_SRQ ? REASON_XRC_SRQ : REASON_NONE;
}

static enum ibv_wc_status on_local_operation(struct engine_owner *owner, const struct send_wqe *work,
                                             enum reason *reason)
{
    struct rig *rig = rig_of(owner);
    rig->local_operation = work->id;
    *reason = rig->local_status ? REASON_LOCAL_KEY_UNKNOWN : REASON_NONE;
    return rig->local_status;
}

static bool on_reaches(struct engine_owner *owner, struct send_wqe *work)
{
    work->remote_srq = work->remote_qp;
    return work->remote_qp == rig_of(owner)->reached;
}

static void on_failed(struct engine_owner *owner, bool sqe)
{
    rig_of(owner)->failures++;
}

static void on_event(struct engine_owner *owner, enum ibv_event_type event)
{
    struct rig *rig = rig_of(owner);
    if (rig->raised < sizeof(rig->events) / sizeof(*rig->events))
        rig->events[rig->raised++] = event;
}

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    struct rig *rig = rig_of(owner);
    rig->dropped[rig->drops++ % (sizeof(rig->dropped) / sizeof(*rig->dropped))] = reason;
}

static void on_note(struct engine_owner *owner, enum event event, uint64_t a, uint64_t b)
{
    struct rig *rig = rig_of(owner);
    if (event != EVENT_ACK_TIMEOUT)
        return;
    rig->timeouts++;
    rig->timeout_psn = (uint32_t)a;
    rig->retries_left = (uint32_t)b;
}

static void on_watch(struct engine_owner *owner, nanos deadline)
{
    rig_of(owner)->told = deadline;
}

static const struct owner_operations operations = {
    .sent = on_sent,
    .take_receive = on_take_receive,
    .return_receive = on_return_receive,
    .select_srq = on_select_srq,
    .received = on_received,
    .local_memory = on_local_memory,
    .receive_memory = on_local_memory,
    .remote_memory = on_remote_memory,
    .invalidate = on_invalidate,
    .local_operation = on_local_operation,
    .reaches = on_reaches,
    .failed = on_failed,
    .event = on_event,
    .dropped = on_dropped,
    .note = on_note,
    .watch = on_watch,
};

static void choose_settings(struct rig *rig)
{
    const struct engine_settings settings = {
        .service = SERVICE_RC,
        .pkey = 0xffff,
        .destination = RIG_PEER,
        .segment = RIG_SEGMENT,
        .window = 16,
        .timeout = RIG_TIMEOUT,
        .retry_count = 2,
        .rnr_retry = 2,
        .min_rnr_timer = 12,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                  NEWER_ACCESS_FLUSH_GLOBAL | NEWER_ACCESS_FLUSH_PERSISTENT,
        .max_message = 1 << 20,
    };
    engine_configure(&rig->engine, &settings);
}

void rig_make(struct rig *rig)
{
    struct send_queue queue = {.memory = rig->queue, .stride = sizeof(rig->queue) / RIG_QUEUE, .capacity = RIG_QUEUE};
    memset(rig, 0, sizeof(*rig));
    rig->told = NANOS_NEVER;
    rig->owner.operations = &operations;
    engine_initialize(&rig->engine, SERVICE_RC, &rig->owner, &queue, rig->saved);
    choose_settings(rig);
    rig->now = NANOS_SECOND;
    for (unsigned i = 0; i < RIG_MEMORY; i++)
        rig->memory[i] = i * 31 >> 3;
}

void rig_make_unreliable(struct rig *rig, enum service service)
{
    rig_make(rig);
    struct send_queue queue = *engine_queue(&rig->engine);
    struct engine_settings settings = *engine_settings_of(&rig->engine);
    rig->service = service;
    engine_initialize(&rig->engine, service, &rig->owner, &queue, NULL);
    settings.service = service;
    settings.number = RIG_NUMBER;
    settings.qkey = RIG_QKEY;
    if (service == SERVICE_UD)
        settings.max_message = RIG_SEGMENT;
    engine_configure(&rig->engine, &settings);
}

enum service rig_service(const struct rig *rig)
{
    return rig->service == SERVICE_RC ? engine_settings_of(&rig->engine)->service : rig->service;
}

void rig_start(struct rig *rig)
{
    engine_start_receiving(&rig->engine, RIG_THEIRS);
    engine_start_transmitting(&rig->engine, RIG_OURS);
}

void rig_resume(struct rig *rig)
{
    engine_resume(&rig->engine);
}

bool rig_has_output(const struct rig *rig)
{
    return engine_has_output(&rig->engine);
}

/* Spreads the local data over the elements, the remainder in the last. */
static void spread(struct send_wqe *work, struct rig_work wanted)
{
    uint32_t count = wanted.sge_count ? wanted.sge_count : 1, at = wanted.at;
    work->sge_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = i + 1 == count ? wanted.at + wanted.length - at : wanted.length / count;
        work->sge[i] = (struct ibv_sge){at, part, wanted.lkey ? wanted.lkey : KEY_ALL};
        at += part;
    }
}

uint64_t rig_post(struct rig *rig, struct rig_work wanted)
{
    struct send_wqe *work = send_queue_reserve(engine_queue(&rig->engine));
    if (!work)
        return 0;
    memset(work, 0, sizeof(*work));
    work->id = ++rig->next_id;
    work->opcode = wanted.opcode;
    work->flags = (uint8_t)(wanted.flags | (wanted.receiver ? WORK_ADDRESSED : 0));
    work->length = wanted.length;
    work->immediate = wanted.immediate;
    work->rkey = wanted.rkey;
    work->remote_address = wanted.remote;
    work->compare_or_add = wanted.compare_or_add;
    work->swap = wanted.swap;
    work->remote_srq = wanted.srq;
    work->remote_qp = wanted.receiver ? wanted.receiver : RIG_PEER;
    work->remote_qkey = wanted.qkey ? wanted.qkey : RIG_QKEY;
    if (wanted.flags & IBV_SEND_INLINE)
        memcpy(work->inline_data, rig->memory + wanted.at, wanted.length);
    else
        spread(work, wanted);
    send_queue_commit(engine_queue(&rig->engine));
    engine_posted(&rig->engine);
    return work->id;
}

uint64_t rig_post_receive(struct rig *rig, uint32_t at, uint32_t length, uint32_t lkey)
{
    struct rig_receive *slot = &rig->receives[rig->posted++ % RIG_QUEUE];
    slot->sge[0] = (struct ibv_sge){at, length, lkey};
    slot->receive = (struct recv_wqe){.id = ++rig->next_id, .sge_count = 1, .sge = slot->sge};
    return slot->receive.id;
}

static bool cannot_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    return false;
}

/* A packet with these pieces as its payload; from a heap block of the very size, so that reading past it is noticed. */
void rig_arrive(struct rig *rig, enum operation operation, uint32_t psn, struct rig_packet wanted)
{
    struct packet packet = wanted.packet;
    struct iovec piece = {malloc(wanted.bytes + 1), wanted.bytes};
    memset(piece.iov_base, wanted.fill, wanted.bytes);
    packet.opcode = op_code(rig_service(rig), operation);
    packet.psn = psn & PSN_MASK;
    if (!packet.pkey)
        packet.pkey = 0xffff;
    if (!packet.qkey)
        packet.qkey = RIG_QKEY;
    packet.payload = (struct payload){.length = wanted.bytes, .count = 1, .pieces = &piece};
    packet.payload.pull = wanted.broken ? cannot_pull : NULL;
    engine_receive(&rig->engine, &packet, rig->now);
    free(piece.iov_base);
}

void rig_wait(struct rig *rig, nanos time)
{
    rig->now += time;
    engine_expire(&rig->engine, rig->now, PEER_SILENT, REASON_NONE);
    rig->told = engine_watch(&rig->engine);
}

bool rig_transmit(struct rig *rig)
{
    rig->out = (struct packet){0};
    if (!engine_transmit(&rig->engine, &rig->out, rig->pieces, rig->now))
        return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < rig->out.payload.count; i++) {
        memcpy(rig->carried + at, rig->out.payload.pieces[i].iov_base, rig->out.payload.pieces[i].iov_len);
        at += rig->out.payload.pieces[i].iov_len;
    }
    return true;
}
