#include "record/replay_owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/grh.h"
#include "wire/lrh.h"
#include "wire/wire.h"

enum { CAPACITY_MOST = 1 << 20, STRIDE_MOST = 1 << 16, RESPONSES_MOST = 256 };

/* ---- the doors ---- */

static struct replay_queues *bucket_of(struct replay *replay, uint32_t process, uint32_t queue)
{
    return &replay->queues[(process * 31 + queue) % BUCKETS];
}

static struct replay_queue *find_queue(struct replay *replay, const struct record *record)
{
    struct replay_queue *queue;
    LIST_FOREACH (queue, bucket_of(replay, record->process, record->queue), entry)
        if (queue->process == record->process && queue->queue == record->queue)
            return queue;
    return NULL;
}

static void free_queue(struct replay_queue *queue)
{
    LIST_REMOVE(queue, entry);
    free(queue->sends.memory);
    free(queue->saved);
    free(queue);
}

/* Makes an engine from the record. This function and those below return false for input that no engine can take. */
static bool create(struct replay *replay, const struct record *record)
{
    uint64_t service = record->CREATE.service, stride = record->CREATE.stride, capacity = record->CREATE.capacity;
    bool known = service == SERVICE_RC || service == SERVICE_UC || service == SERVICE_UD || service == SERVICE_XRC;
    if (!known || stride < sizeof(struct send_wqe) || stride > STRIDE_MOST || stride % 8 || !capacity ||
        capacity > CAPACITY_MOST || capacity & (capacity - 1) || stride * capacity > REPLAY_MEMORY_MOST - replay->taken)
        return false;
    struct replay_queue *queue = calloc(1, sizeof *queue);
    uint8_t *memory = queue ? calloc(capacity, stride) : NULL;
    if (!memory) {
        free(queue);
        return false;
    }
    replay->taken += stride * capacity;
    queue->replay = replay;
    queue->process = record->process;
    queue->queue = record->queue;
    queue->owner.operations = service == SERVICE_XRC ? &replay_operations_of_xrc : &replay_operations;
    queue->sends = (struct send_queue){.memory = memory, .stride = (uint32_t)stride, .capacity = (uint32_t)capacity};
    engine_initialize(&queue->engine, (enum service)service, &queue->owner, &queue->sends, NULL);
    LIST_INSERT_HEAD(bucket_of(replay, queue->process, queue->queue), queue, entry);
    replay->result->queues++;
    return true;
}

static bool run_post(struct replay_queue *queue, const struct record *record)
{
    struct send_queue *sends = engine_queue(&queue->engine);
    struct send_wqe *work = send_queue_reserve(sends);
    bool inlined = record->POST.flags & IBV_SEND_INLINE;
    size_t length = inlined ? record->POST.length : record->POST.sges * sizeof(struct ibv_sge);
    if (!work || record->POST.position != sends->tail || length != record->length ||
        length > sends->stride - sizeof *work || record->POST.sges > PAYLOAD_PIECES_MAX)
        return false;
    *work = (struct send_wqe){.id = record->POST.id,
                              .opcode = (uint8_t)record->POST.opcode,
                              .flags = (uint8_t)record->POST.flags,
                              .sge_count = (uint8_t)record->POST.sges,
                              .length = (uint32_t)record->POST.length,
                              .immediate = (uint32_t)record->POST.immediate,
                              .rkey = (uint32_t)record->POST.rkey,
                              .remote_address = record->POST.remote_address,
                              .compare_or_add = record->POST.compare_or_add,
                              .swap = record->POST.swap,
                              .address = record->POST.has_address ? queue : NULL,
                              .remote_qp = (uint32_t)record->POST.remote_qp,
                              .remote_qkey = (uint32_t)record->POST.remote_qkey,
                              .remote_srq = (uint32_t)record->POST.remote_srq,
                              .owner_value = (uint32_t)record->POST.owner_value};
    if (length)
        memcpy(work->inline_data, record->bytes, length);
    send_queue_commit(sends);
    return true;
}

/* Reads the packet of a RECEIVE, or of a HEAR, which has the same numbers. */
static bool is_packet(struct replay_queue *queue, const struct record *record, struct packet *packet)
{
    unsigned headers, pad;
    uint64_t outer = record->RECEIVE.outer;
    size_t length = record->length ? record->bytes[0] : 0;
    if (!length || (outer != 0 && outer != LRH_LENGTH && outer != GRH_LENGTH) || 1 + length + outer > record->length ||
        wire_decode(record->bytes + 1, length, packet, &headers, &pad) != WIRE_FINE || headers != length)
        return false;
    packet->lrh = outer == LRH_LENGTH ? record->bytes + 1 + length : NULL;
    packet->grh = outer == GRH_LENGTH ? record->bytes + 1 + length : NULL;
    uint32_t payload = (uint32_t)record->RECEIVE.payload;
    packet->payload = replay_payload(queue, payload, record->RECEIVE.by_reference);
    return wire_check_payload(packet, payload) == WIRE_FINE;
}

static bool run_receive(struct replay_queue *queue, const struct record *record)
{
    struct packet packet;
    if (!is_packet(queue, record, &packet))
        return false;
    engine_receive(&queue->engine, &packet, record->RECEIVE.now);
    return true;
}

static bool run_hear_response(struct replay_queue *queue, const struct record *record)
{
    struct packet packet;
    if (!is_packet(queue, record, &packet))
        return false;
    engine_hear_response(&queue->engine, &packet);
    return true;
}

/* The number of bytes of headers that are compared. The value that an atomic found is not: it is in the program's
 * memory, where other queue pairs change it at the same time. It is the last header of the answer. */
static size_t compared(const struct packet *packet, size_t length)
{
    return op_table[packet->opcode].flags & OP_ATOMICACKETH ? length - sizeof packet->original : length;
}

static bool run_transmit(struct replay_queue *queue, const struct record *record)
{
    struct packet packet = {0};
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t headers[WIRE_HEADERS_MAX];
    struct record then;
    if (!engine_transmit(&queue->engine, &packet, pieces, record->TRANSMIT.now)) {
        REPLAY_EXPECT(queue, NOTHING, 0);
        return true;
    }
    size_t length = wire_encode(&packet, headers);
    if (REPLAY_TAKE(queue, TRANSMITTED, &then, packet.payload.length) &&
        (then.length != length || memcmp(then.bytes, headers, compared(&packet, length)))) {
        char now[160];
        queue->replay->result->differs = true;
        replay_say(queue->replay, "byte %zu, queue pair %u of process %u: the engine now transmits another packet, %s",
                   queue->replay->at, queue->queue, queue->process, wire_describe(&packet, now, sizeof now));
    }
    return true;
}

static bool run_next_datagram(struct replay_queue *queue, const struct record *record)
{
    const struct send_wqe *work = engine_is_reliable(&queue->engine) ? NULL : engine_next_datagram(&queue->engine);
    if (work)
        REPLAY_EXPECT(queue, NEXT, work->id);
    else
        REPLAY_EXPECT(queue, NOTHING, 0);
    return true;
}

static bool is_possible(const struct engine_settings *settings)
{
    return settings->segment && settings->window && settings->timeout <= 31 && settings->retry_count <= 7 &&
           settings->rnr_retry <= 7 && settings->min_rnr_timer <= 31 && !settings->direct;
}

static bool run_configure(struct replay_queue *queue, const struct record *record)
{
    struct engine_settings settings = record_settings(record);
    if (engine_is_reliable(&queue->engine) && !is_possible(&settings))
        return false;
    engine_configure(&queue->engine, &settings);
    return true;
}

static bool run_keep_responses(struct replay_queue *queue, const struct record *record)
{
    uint64_t count = record->KEEP_RESPONSES.count;
    struct responder_resource *saved = count && count <= RESPONSES_MOST ? calloc(RESPONSES_MOST, sizeof *saved) : NULL;
    if (count && !saved)
        return false;
    engine_keep_responses(&queue->engine, saved);
    free(queue->saved);
    queue->saved = saved;
    return true;
}

static bool run_watch(struct replay_queue *queue, const struct record *record)
{
    REPLAY_EXPECT(queue, WATCHED, engine_watch(&queue->engine));
    return true;
}

static bool run_lend(struct replay_queue *queue, const struct record *record)
{
    struct engine_position position = engine_lend(&queue->engine);
    REPLAY_EXPECT(queue, LENT, position.expected_psn, position.msn, position.nak_sent);
    return true;
}

static bool run_destroy(struct replay_queue *queue, const struct record *record)
{
    queue->replay->taken -= (size_t)queue->sends.stride * queue->sends.capacity;
    free_queue(queue);
    return true;
}

/* The function of a door that is one call of the engine. */
#define ONE_CALL(function, ...)                                                                                        \
    static bool run_##function(struct replay_queue *queue, const struct record *record)                                \
    {                                                                                                                  \
        engine_##function(&queue->engine, ##__VA_ARGS__);                                                              \
        return true;                                                                                                   \
    }
ONE_CALL(posted)
ONE_CALL(receive_along, (uint32_t)record->RECEIVE_ALONG.along, record->RECEIVE_ALONG.now)
ONE_CALL(expire, record->EXPIRE.now, (enum silent_peer)record->EXPIRE.peer, (enum reason)record->EXPIRE.silence)
ONE_CALL(unreadable, &(struct packet){.psn = (uint32_t)record->UNREADABLE.psn & 0xffffff})
ONE_CALL(acknowledge_late)
ONE_CALL(allow_references, (uint32_t)record->ALLOW_REFERENCES.segment)
ONE_CALL(start_receiving, (uint32_t)record->START_RECEIVING.expected_psn)
ONE_CALL(start_transmitting, (uint32_t)record->START_TRANSMITTING.first_psn)
ONE_CALL(drain, record->DRAIN.draining)
ONE_CALL(resume)
ONE_CALL(flush)
ONE_CALL(reset)
ONE_CALL(reclaim)
ONE_CALL(take_over, &(struct engine_position){(uint32_t)record->TAKE_OVER.expected_psn, (uint32_t)record->TAKE_OVER.msn,
                                              record->TAKE_OVER.nak_sent})

enum { ANY, RELIABLE }; /* RELIABLE: only RC and XRC have the door */

/* The replay has no queue pair yet: run_door calls create. */
static bool run_create(struct replay_queue *queue, const struct record *record)
{
    return false;
}

static const struct {
    bool (*run)(struct replay_queue *, const struct record *);
    bool reliable;
} doors[RECORD_KINDS] = {
    [RECORD_POST] = {run_post, ANY},
    [RECORD_DESTROY] = {run_destroy, ANY},
#define DOOR(type, name, record, service, ...) [RECORD_##record] = {run_##name, service},
#define DOOR_APART DOOR
#include "transport/engine/doors.def"
};

/* Reports the call that the engine made then and does not make now. */
static void look_for_missing(struct replay *replay, const struct record *door)
{
    struct record record;
    size_t size;
    if (!replay_goes_on(replay) || !replay_peek(replay, door->process, door->queue, &record, &size))
        return;
    char then[160];
    replay_spell(&record, record_lines[record.kind].count, then, sizeof then);
    replay->result->differs = true;
    replay_say(
        replay,
        "byte %zu, queue pair %u of process %u, %s: the recording has \"%s\", and the engine now does nothing more",
        replay->at, door->queue, door->process, record_lines[door->kind].words, then);
}

static void run_door(struct replay *replay, const struct record *record)
{
    replay->door = record;
    struct replay_queue *queue = find_queue(replay, record);
    bool can = record->kind == RECORD_CREATE
                   ? !queue && create(replay, record)
                   : queue && doors[record->kind].run &&
                         (!doors[record->kind].reliable || engine_is_reliable(&queue->engine)) &&
                         doors[record->kind].run(queue, record);
    replay->result->doors++;
    if (!can)
        replay_say(replay,
                   "byte %zu: the recording has \"%s\" for queue pair %u of process %u, which can't be done there",
                   replay->at, record_lines[record->kind].words, record->queue, record->process);
    look_for_missing(replay, record);
}

static void run_records(struct replay *replay)
{
    struct replay_result *result = replay->result;
    while (replay_goes_on(replay)) {
        struct record record;
        size_t size;
        result->fault = record_read(replay->bytes + replay->at, replay->length - replay->at, &record, &size);
        if (result->fault != RECORD_FINE)
            return;
        enum record_class class = record_lines[record.kind].class;
        if (class == RECORD_CLASS_ANSWER || class == RECORD_CLASS_RESULT) {
            result->fault = RECORD_DAMAGED;
            return;
        }
        replay->at += size;
        result->records++;
        if (!replay->hears(replay->context, &record))
            return;
        if (class == RECORD_CLASS_DOOR)
            run_door(replay, &record);
    }
    if (replay->cut)
        result->fault = RECORD_CUT;
}

static void forget_all(struct replay *replay)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        while (!LIST_EMPTY(&replay->queues[i]))
            free_queue(LIST_FIRST(&replay->queues[i]));
}

void replay_run(const uint8_t *bytes, size_t length, replay_hears *hears, void *context, struct replay_result *result)
{
    *result = (struct replay_result){0};
    result->fault = record_check_head(bytes, length, &result->version);
    if (result->fault != RECORD_FINE)
        return;
    struct replay *replay = calloc(1, sizeof *replay);
    uint8_t *memory = mmap(NULL, replay_memory_size + replay_gone_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (replay && memory != MAP_FAILED && !mprotect(memory + replay_memory_size, replay_gone_size, PROT_NONE)) {
        *replay = (struct replay){.bytes = bytes,
                                  .length = length,
                                  .at = RECORDING_HEAD,
                                  .result = result,
                                  .memory = memory,
                                  .hears = hears,
                                  .context = context};
        run_records(replay);
        result->at = replay->at;
        forget_all(replay);
    } else {
        snprintf(result->words, sizeof result->words, "there is no memory to run it");
    }
    if (memory != MAP_FAILED)
        munmap(memory, replay_memory_size + replay_gone_size);
    free(replay);
}
