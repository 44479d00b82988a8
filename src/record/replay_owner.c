#include "record/replay_owner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/container.h"

static struct replay_queue *queue_of(struct engine_owner *owner)
{
    return container_of(owner, struct replay_queue, owner);
}

/* ---- what the engine does, against the recording ---- */

void replay_say(struct replay *replay, const char *format, ...)
{
    va_list arguments;
    if (*replay->result->words)
        return;
    va_start(arguments, format);
    vsnprintf(replay->result->words, sizeof replay->result->words, format, arguments);
    va_end(arguments);
}

size_t replay_spell(const struct record *record, unsigned count, char *to, size_t size)
{
    const struct record_line *line = &record_lines[record->kind];
    size_t used = (size_t)snprintf(to, size, "%s", line->words);
    const char *name = line->fields;
    for (unsigned i = 0; i < count && i < line->count && used < size; i++) {
        int length = (int)strcspn(name, ",");
        used += (size_t)snprintf(to + used, size - used, "%s %.*s %llu", i ? "," : "", length, name,
                                 (unsigned long long)record->numbers[i]);
        name += length + 2;
    }
    return used;
}

static void differ(struct replay *replay, const struct record *does, unsigned count, const struct record *recorded)
{
    char now[160], then[160];
    replay_spell(does, count, now, sizeof now);
    if (recorded)
        replay_spell(recorded, record_lines[recorded->kind].count, then, sizeof then);
    replay->result->differs = true;
    replay_say(replay,
               "byte %zu, queue pair %u of process %u, %s: the recording has \"%s\", and the engine now does \"%s\"",
               replay->at, does->queue, does->process, record_lines[replay->door->kind].words,
               recorded ? then : "nothing more", now);
}

bool replay_peek(struct replay *replay, uint32_t process, uint32_t queue, struct record *record, size_t *size)
{
    if (record_read(replay->bytes + replay->at, replay->length - replay->at, record, size) != RECORD_FINE)
        return false;
    enum record_class class = record_lines[record->kind].class;
    return record->process == process && record->queue == queue &&
           (class == RECORD_CLASS_ANSWER || class == RECORD_CLASS_RESULT);
}

/* Returns true if the recording ends here. A DOOR and its effects were one write, which was cut short if the process
 * was killed, or the disk was full. */
static bool is_cut(const struct replay *replay)
{
    struct record record;
    size_t size;
    enum record_fault fault = record_read(replay->bytes + replay->at, replay->length - replay->at, &record, &size);
    return fault == RECORD_END || fault == RECORD_CUT;
}

bool replay_goes_on(const struct replay *replay)
{
    return !replay->ended && !replay->cut && !replay->result->differs && !*replay->result->words;
}

bool replay_take(struct replay_queue *queue, enum record_kind kind, unsigned count, const uint64_t *numbers,
                 struct record *record)
{
    struct replay *replay = queue->replay;
    struct record does = {.kind = kind, .process = queue->process, .queue = queue->queue};
    size_t size;
    memcpy(does.numbers, numbers, count * sizeof *numbers);
    if (!replay_goes_on(replay))
        return false;
    if (is_cut(replay)) {
        replay->cut = true;
        return false;
    }
    bool there = replay_peek(replay, queue->process, queue->queue, record, &size);
    if (!there || record->kind != kind || memcmp(record->numbers, numbers, count * sizeof *numbers)) {
        differ(replay, &does, count, there ? record : NULL);
        return false;
    }
    replay->at += size;
    replay->result->records++;
    if (!replay->hears(replay->context, record))
        replay->ended = true;
    return true;
}

#define TAKE(owner, kind, record, ...) REPLAY_TAKE(queue_of(owner), kind, record, __VA_ARGS__)

/* ---- the owner ---- */

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    REPLAY_EXPECT(queue_of(owner), SENT, work->id, work->opcode, status, reason);
}

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct replay_queue *queue = queue_of(owner);
    struct record record;
    if (!TAKE(owner, TAKE_RECEIVE, &record, least) || record.TAKE_RECEIVE.found == RECEIVE_NONE)
        return NULL;
    if (record.TAKE_RECEIVE.found != RECEIVE_FOUND)
        return record.TAKE_RECEIVE.found == RECEIVE_TOO_SHORT ? &receive_too_short : &receive_unfetched;
    uint64_t sges = record.TAKE_RECEIVE.sges;
    if (sges > SGES_MOST || sges * sizeof *queue->sges != record.length) {
        replay_say(queue->replay, "byte %zu: a receive has %llu elements in %u bytes", queue->replay->at,
                   (unsigned long long)sges, record.length);
        return NULL;
    }
    if (record.length)
        memcpy(queue->sges, record.bytes, record.length);
    queue->receive = (struct recv_wqe){.id = record.TAKE_RECEIVE.id,
                                       .sge_count = (uint32_t)sges,
                                       .skip = (uint32_t)record.TAKE_RECEIVE.skip,
                                       .limit = (uint32_t)record.TAKE_RECEIVE.limit,
                                       .sge = queue->sges};
    return &queue->receive;
}

static void on_return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    REPLAY_EXPECT(queue_of(owner), RETURN_RECEIVE, receive->id);
}

static enum reason on_select_srq(struct engine_owner *owner, uint32_t number)
{
    struct record record;
    return TAKE(owner, SELECT_SRQ, &record, number) ? (enum reason)record.SELECT_SRQ.reason : REASON_NONE;
}

static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    REPLAY_EXPECT(queue_of(owner), RECEIVED, receive->id, arrival->status, arrival->reason, arrival->opcode,
                  arrival->length, arrival->flags, arrival->immediate_or_key, arrival->solicited, arrival->source);
}

/* Returns true if the memory of the store that followed this look-up was gone. It is gone in the replay, too. */
static bool is_gone(struct replay *replay, const struct replay_queue *queue)
{
    struct replay look = *replay;
    struct record record;
    size_t size;
    while (replay_peek(&look, queue->process, queue->queue, &record, &size)) {
        if (record.kind == RECORD_STORE)
            return !record.STORE.can_land;
        look.at += size;
    }
    return false;
}

static enum reason give_memory(struct replay_queue *queue, bool answered, enum reason reason, uint32_t length,
                               struct iovec *out)
{
    struct replay *replay = queue->replay;
    if (!answered || reason)
        return answered ? reason : REASON_LOCAL_RANGE;
    *out = (struct iovec){replay->memory + (is_gone(replay, queue) ? replay_memory_size : 0), length};
    return REASON_NONE;
}

static enum reason on_local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                   struct iovec *out)
{
    struct record record = {0};
    bool answered = TAKE(owner, LOCAL_MEMORY, &record, sge->addr, sge->length, sge->lkey, access);
    return give_memory(queue_of(owner), answered, (enum reason)record.LOCAL_MEMORY.reason, sge->length, out);
}

static enum reason on_receive_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                     struct iovec *out)
{
    struct record record = {0};
    bool answered = TAKE(owner, RECEIVE_MEMORY, &record, sge->addr, sge->length, sge->lkey, access);
    return give_memory(queue_of(owner), answered, (enum reason)record.RECEIVE_MEMORY.reason, sge->length, out);
}

static enum reason on_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                    unsigned access, struct iovec *out)
{
    struct record record = {0};
    bool answered = TAKE(owner, REMOTE_MEMORY, &record, rkey, address, length, access);
    return give_memory(queue_of(owner), answered, (enum reason)record.REMOTE_MEMORY.reason, length, out);
}

static enum reason on_invalidate(struct engine_owner *owner, uint32_t rkey)
{
    struct record record;
    return TAKE(owner, INVALIDATE, &record, rkey) ? (enum reason)record.INVALIDATE.reason : REASON_NONE;
}

static enum ibv_wc_status on_local_operation(struct engine_owner *owner, const struct send_wqe *work,
                                             enum reason *reason)
{
    struct record record;
    *reason = REASON_NONE;
    if (!TAKE(owner, LOCAL_OPERATION, &record, work->id, work->opcode))
        return IBV_WC_SUCCESS;
    *reason = (enum reason)record.LOCAL_OPERATION.reason;
    return (enum ibv_wc_status)record.LOCAL_OPERATION.status;
}

static void on_failed(struct engine_owner *owner, bool sqe)
{
    REPLAY_EXPECT(queue_of(owner), FAILED, sqe);
}

static void on_event(struct engine_owner *owner, enum ibv_event_type event)
{
    REPLAY_EXPECT(queue_of(owner), EVENT, event);
}

static void on_watch(struct engine_owner *owner, nanos deadline)
{
    REPLAY_EXPECT(queue_of(owner), WATCH_BY, deadline);
}

static void on_note(struct engine_owner *owner, enum event event, uint64_t a, uint64_t b)
{
    REPLAY_EXPECT(queue_of(owner), NOTE, event, a, b);
}

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    REPLAY_EXPECT(queue_of(owner), DROPPED, packet->opcode, packet->psn, reason);
}

/* No initiator of DC is recorded, so only a file that is wrong has work of one. */
static bool on_reaches(struct engine_owner *owner, struct send_wqe *work)
{
    return true;
}

const struct owner_operations replay_operations = {RECORD_OPERATIONS, .reaches = on_reaches};
const struct owner_operations replay_operations_of_xrc = {
    RECORD_OPERATIONS, .reaches = on_reaches, .select_srq = on_select_srq};

/* The `pull` of a payload: succeeds, or fails, as when it was recorded; it stores nothing. */
static bool store(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct replay_queue *queue = payload->source;
    struct record record;
    uint64_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += to[i].iov_len;
    return !TAKE(&queue->owner, STORE, &record, offset, length) || record.STORE.stored;
}

struct payload replay_payload(struct replay_queue *queue, uint32_t length, bool by_reference)
{
    if (!length)
        return (struct payload){0};
    return (struct payload){
        .length = length, .count = PAYLOAD_STORES, .by_reference = by_reference, .pull = store, .source = queue};
}
