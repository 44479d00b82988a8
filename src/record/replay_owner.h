/* The shared part of replay.c and replay_owner.c. */
#pragma once

#include <sys/queue.h>

#include "record/replay.h"
#include "transport/engine/engine.h"

enum { BUCKETS = 1024, SGES_MOST = 256 };

/* Memory of programs: all addresses share it, since its contents are not compared. The part after it can't be
 * accessed. */
static const size_t replay_memory_size = (size_t)1 << 32, replay_gone_size = 1 << 20;

struct replay_queue {
    LIST_ENTRY(replay_queue) entry;
    struct engine_owner owner;
    struct replay *replay;
    struct engine engine;
    uint32_t process, queue;
    struct send_queue sends; /* the queue's memory; the engine has its positions */
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
    size_t taken; /* bytes of send queues */
    replay_hears *hears;
    void *context;
    bool ended; /* by the caller */
    bool cut;   /* the recording ended before the engine did */
};

/* The operations of replayed engines: each call's arguments must be next in the recording, which has the answers. */
extern const struct owner_operations replay_operations, replay_operations_of_xrc;

/* The payload of a packet, for the engine. */
struct payload replay_payload(struct replay_queue *, uint32_t length, bool by_reference);

/* Returns true unless the replay has ended. */
bool replay_goes_on(const struct replay *);

/* Ends the replay for a fault of the recording or the engine, and keeps the first one's words. */
void replay_say(struct replay *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the next record, if it is an action of this queue pair's engine. */
bool replay_peek(struct replay *, uint32_t process, uint32_t queue, struct record *, size_t *size);

/* Compares an action of the engine with the next record, in its first `count` numbers; *record then has all of them.
 * False: the recording has another action, which ends the replay. */
bool replay_take(struct replay_queue *, enum record_kind, unsigned count, const uint64_t *numbers, struct record *);

#define REPLAY_TAKE(queue, kind, record, ...)                                                                          \
    replay_take(queue, RECORD_##kind, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__}, \
                record)
/* The same for an action of which nothing more is needed. */
#define REPLAY_EXPECT(queue, kind, ...) REPLAY_TAKE(queue, kind, &(struct record){0}, __VA_ARGS__)

/* Writes a record in words: its kind, and the first `count` of its numbers. */
size_t replay_spell(const struct record *, unsigned count, char *to, size_t size);
