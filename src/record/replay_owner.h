/* The shared part of replay.c and replay_owner.c. */
#pragma once

#include <sys/queue.h>

#include "record/replay.h"
#include "transport/engine/engine.h"

enum { BUCKETS = 1024, SGES_MOST = 256 };

/* The sizes of the memory of programs, which all addresses share, since its contents are not compared, and of the part
 * after it, which can't be accessed: memory that is gone. */
static const size_t replay_memory_size = (size_t)1 << 32, replay_gone_size = 1 << 20;

struct replay_queue {
    LIST_ENTRY(replay_queue) entry;
    struct engine_owner owner;
    struct replay *replay;
    struct engine engine;
    uint32_t process, queue;
    struct send_queue sends; /* the send queue's memory; the engine has its positions */
    struct responder_resource *saved;
    struct recv_wqe receive;
    struct ibv_sge sges[SGES_MOST];
};
LIST_HEAD(replay_queues, replay_queue);

struct replay {
    const uint8_t *bytes;
    size_t length, at;
    struct replay_result *result;
    const struct record *door; /* the door that is being run */
    struct replay_queues queues[BUCKETS];
    uint8_t *memory;
    size_t taken; /* bytes of all send queues */
    replay_hears *hears;
    void *context;
    bool ended; /* the caller has ended the replay (replay_hears) */
    bool cut;   /* the recording ended before the engine did */
};

/* The operations of a replayed engine's owner: each call must be the next record, from which it gets its answer. */
extern const struct owner_operations replay_operations, replay_operations_of_xrc;

/* The payload of a packet for a replayed engine. */
struct payload replay_payload(struct replay_queue *, uint32_t length, bool by_reference);

/* Returns true unless the replay ends: by a difference, a fault, the caller, or the end of the recording. */
bool replay_goes_on(const struct replay *);

/* Ends the replay because of a fault of the recording or the engine. Keeps the words of the first fault. */
void replay_say(struct replay *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the next record, if it is an action of this queue pair's engine. */
bool replay_peek(struct replay *, uint32_t process, uint32_t queue, struct record *, size_t *size);

/* Compares an action of the engine with the next record by its first `count` numbers; *record then has all numbers.
 * False: the recording has another action, which ends the replay, or the replay has ended. */
bool replay_take(struct replay_queue *, enum record_kind, unsigned count, const uint64_t *numbers, struct record *);

#define REPLAY_TAKE(queue, kind, record, ...)                                                                          \
    replay_take(queue, RECORD_##kind, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__}, \
                record)
/* The same, where the record is not needed afterwards. */
#define REPLAY_EXPECT(queue, kind, ...) REPLAY_TAKE(queue, kind, &(struct record){0}, __VA_ARGS__)

/* Writes a record in words: its kind, and the first `count` of its numbers. */
size_t replay_spell(const struct record *, unsigned count, char *to, size_t size);
