/* Tag matching between real engines over wires that lose and repeat, in virtual time, against the model: senders are
 * rigs, and the queue pairs on the matching list are rigs with another host. SOFTVERBS_STEPS messages and operations
 * (100000), in rounds from different seeds; SOFTVERBS_SEED runs one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/testing/rig.h"
#include "transport/testing/tags_trial.h"
#include "transport/tm/tags.h"
#include "wire/bytes.h"

enum {
    PORTS = 3,
    LIST = 24,
    BUFFER = 2048,
    SPARE = 64,
    ROUND = 100,
    PLACES = 24,
    HEADS = 0,
    DATA = 4096,
    FINISHES = 60000
};

struct world;

struct taker {
    struct rig rig; /* first: its host's operations get it */
    struct tags_port port;
    struct world *world;
    uint64_t spare; /* id of the ordinary receive that the open message has */
    struct recv_wqe receive;
    struct ibv_sge sge;
};

struct world {
    uint64_t chance;
    struct tags tags;
    void *list;
    struct model model;
    struct rig senders[PORTS];
    struct taker takers[PORTS];
    uint8_t memory[(LIST + SPARE) * BUFFER];
    uint32_t free_buffers;
    uint32_t spares, next_spare; /* ordinary receives that are posted */
    uint8_t fills[LIST];         /* of the rendezvous into each buffer */
    uint32_t handles[LIST];
    uint32_t unexpected, processed;
    unsigned lose, places[PORTS], matched, rendezvous, lost, late;
    struct payload arriving; /* what the sender has, whether it can be had or not */
    nanos now;
};

static uint32_t pick(struct world *world, uint32_t below)
{
    return trial_pick(&world->chance, below);
}

static void compare(const struct tags_event *event, const struct model_event *expected)
{
    TRIAL_COMPARE(event, expected);
}

static void look_at(const struct world *world, uint64_t buffer, uint32_t length, uint8_t fill)
{
    const uint8_t *at = world->memory + buffer * BUFFER;
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(at[i], fill);
}

/* -- the host of a queue pair on the list */

static struct taker *taker_of(struct engine_owner *owner)
{
    return (struct taker *)owner;
}

static int index_of(const struct taker *taker)
{
    return (int)(taker - taker->world->takers);
}

static const struct recv_wqe *take_spare(struct taker *taker, enum tags_kind kind)
{
    struct world *world = taker->world;
    if (!world->spares)
        return NULL;
    world->spares--;
    taker->spare = LIST + world->next_spare++ % SPARE;
    taker->sge = (struct ibv_sge){.addr = taker->spare * BUFFER, .length = BUFFER, .lkey = KEY_ALL};
    taker->receive = (struct recv_wqe){.id = taker->spare, .sge_count = 1, .sge = &taker->sge};
    tags_accept(&world->tags, &taker->port, kind);
    return &taker->receive;
}

static void match(struct world *world, const struct tags_event *event, const struct model_event *expected)
{
    compare(event, expected);
    world->fills[event->id] = (uint8_t)(event->application >> 16);
}

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct taker *taker = taker_of(owner);
    struct world *world = taker->world;
    uint8_t bytes[RIG_SEGMENT];
    struct iovec to = {bytes, packet->payload.length};
    assert_true(payload_copy(&world->arriving, 0, &to, 1));
    bool whole = op_operation(packet->opcode) == OPERATION_SEND_ONLY, has_spare = world->spares;
    enum tags_kind kind = tags_arrive(&world->tags, &taker->port, packet);
    if (kind == TAGS_NOTHING) {
        assert_non_null(packet->payload.pull);
        return &receive_unfetched;
    }
    bool arrived = model_begin(&world->model, index_of(taker), bytes, packet->payload.length, whole, has_spare);
    const struct recv_wqe *receive =
        kind >= TAGS_EAGER ? tags_receive(&world->tags, &taker->port) : take_spare(taker, kind);
    assert_int_equal(receive != NULL, arrived);
    struct tags_event event;
    struct model_event expected;
    bool matches = tags_match(&world->tags, &taker->port, packet, &event);
    assert_int_equal(matches, arrived && model_matches(&world->model, index_of(taker), &expected));
    if (matches)
        match(world, &event, &expected);
    return receive;
}

static void (*drop)(struct engine_owner *, const struct packet *, enum reason); /* of the rig */

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    struct taker *taker = taker_of(owner);
    struct world *world = taker->world;
    struct tags_event event;
    struct model_event expected;
    drop(owner, packet, reason);
    if (reason != REASON_PACKET_PULL)
        return;
    bool matches = tags_match_early(&world->tags, &taker->port, &event);
    assert_int_equal(matches, model_is_late(&world->model, index_of(taker), &expected));
    world->late += matches;
    if (matches)
        match(world, &event, &expected);
}

static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct taker *taker = taker_of(owner);
    struct world *world = taker->world;
    struct tags_event event;
    struct model_event expected;
    uint64_t id = receive->id;
    tags_received(&world->tags, &taker->port, id, arrival, &event);
    model_end(&world->model, index_of(taker), id, arrival->length, arrival->status, &expected);
    compare(&event, &expected);
    bool tagged = event.id < LIST;
    uint8_t fill =
        tagged && event.flags == IBV_WC_TM_DATA_VALID ? world->fills[event.id] : (uint8_t)(event.application >> 16);
    if (tagged && event.flags & IBV_WC_TM_DATA_VALID) {
        look_at(world, event.id, event.length, fill);
        world->matched++;
    }
    if (tagged && event.flags == IBV_WC_TM_MATCH && event.status == IBV_WC_SUCCESS)
        world->fills[event.id] = fill;
    else if (tagged)
        world->free_buffers |= 1u << event.id;
    world->unexpected += !tagged && event.opcode == IBV_WC_TM_RECV;
}

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    struct taker *taker = taker_of(owner);
    struct world *world = taker->world;
    struct tags_event event;
    struct model_event expected;
    assert_true(tags_owns(work));
    if (!tags_sent(&world->tags, &taker->port, work, status, reason, &event))
        return;
    model_rendezvous_end(&world->model, event.id, status, &expected);
    compare(&event, &expected);
    look_at(world, event.id, event.length, world->fills[event.id]);
    world->free_buffers |= 1u << event.id;
    world->rendezvous++;
}

static enum reason on_local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                   struct iovec *memory)
{
    *memory = (struct iovec){taker_of(owner)->world->memory + sge->addr, sge->length};
    return REASON_NONE;
}

static struct owner_operations operations;

/* -- steps */

static void operate(struct world *world)
{
    static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX, 0xff, 0xff00, 0};
    struct ibv_sge sge = {.length = 1000 + pick(world, BUFFER - 1000), .lkey = KEY_ALL};
    struct ibv_ops_wr wr = {.wr_id = 1000, .flags = (int)pick(world, 4)};
    struct tags_event event;
    struct model_event expected;
    bool completes, should;
    uint32_t choice = pick(world, 10), buffer = (uint32_t)__builtin_ffs((int)world->free_buffers), freed = 0;
    wr.tm.unexpected_cnt = pick(world, 3) ? world->unexpected : world->processed;
    wr.opcode = choice == 0 ? IBV_WR_TAG_SYNC : choice < 3 || !buffer ? IBV_WR_TAG_DEL : IBV_WR_TAG_ADD;
    if (wr.opcode == IBV_WR_TAG_DEL)
        wr.tm.handle = world->handles[pick(world, LIST)];
    else if (wr.opcode == IBV_WR_TAG_ADD) {
        sge.addr = (buffer - 1) * BUFFER;
        wr.tm.add.recv_wr_id = buffer - 1;
        wr.tm.add.mask = masks[pick(world, 5)];
        wr.tm.add.tag = (pick(world, 3) << 8 | pick(world, 3)) & wr.tm.add.mask;
        wr.tm.add.sg_list = &sge;
        wr.tm.add.num_sge = 1;
    }
    for (uint32_t i = 0; i < world->model.count; i++)
        if (wr.opcode == IBV_WR_TAG_DEL && world->model.list[i].handle == wr.tm.handle)
            freed = 1u << world->model.list[i].id;
    enum reason reason = tags_operate(&world->tags, &wr, &event, &completes);
    int error = model_operate(&world->model, &wr, &expected, &should);
    assert_int_equal(reason == REASON_NONE, !error);
    if (error)
        return;
    assert_int_equal(completes, should);
    if (completes)
        compare(&event, &expected);
    if (wr.flags & IBV_OPS_TM_SYNC)
        world->processed = wr.tm.unexpected_cnt;
    world->free_buffers |= freed;
    if (wr.opcode == IBV_WR_TAG_ADD) {
        world->free_buffers &= ~(1u << wr.tm.add.recv_wr_id);
        world->handles[pick(world, LIST)] = wr.tm.handle;
    }
}

/* A message from a separate place: the data of a rendezvous stay until the round is over. */
static void send(struct world *world, int port)
{
    static const uint8_t opcodes[] = {IBV_TMH_EAGER, IBV_TMH_EAGER, IBV_TMH_RNDV, IBV_TMH_RNDV, IBV_TMH_NO_TAG};
    struct rig *rig = &world->senders[port];
    uint32_t place = world->places[port], at = DATA + place * BUFFER, length;
    if (place == PLACES)
        return;
    uint8_t *bytes = rig->memory + at, opcode = opcodes[pick(world, sizeof(opcodes))], fill = (uint8_t)pick(world, 256);
    length = pick(world, opcode == IBV_TMH_RNDV ? BUFFER - TAGS_HEAD : 1000);
    bytes[0] = opcode;
    memset(bytes + 1, 0, 3);
    bytes_put32(bytes + 4, (uint32_t)fill << 16 | place);
    bytes_put64(bytes + 8, pick(world, 3) << 8 | pick(world, 3));
    memset(bytes + (opcode == IBV_TMH_RNDV ? TAGS_HEAD : TAGS_TMH), fill, length);
    if (opcode == IBV_TMH_RNDV) {
        bytes_put64(bytes + 16, at + TAGS_HEAD);
        bytes_put32(bytes + 24, KEY_ALL);
        bytes_put32(bytes + 28, length);
        rig_post_receive(rig, FINISHES, TAGS_HEAD, KEY_ALL);
        length = TAGS_HEAD - TAGS_TMH;
    }
    world->places[port] +=
        rig_post(rig,
                 (struct rig_work){.opcode = IBV_WR_SEND, .at = at, .length = TAGS_TMH + length, .lkey = KEY_ALL}) != 0;
}

static bool cannot_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    return false;
}

static bool pulls_first_bytes(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    uint32_t end = offset;
    for (uint32_t i = 0; i < count; i++)
        end += (uint32_t)to[i].iov_len;
    return end <= TAGS_TMH && payload_copy(payload->source, offset, to, count);
}

static bool carry(struct world *world, struct rig *from, struct rig *to)
{
    struct packet packet = {0};
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    if (!rc_transmit(&from->engine.rc, &packet, pieces, world->now))
        return false;
    uint32_t chance = world->lose ? pick(world, world->lose) : 1;
    world->lost += !chance;
    world->arriving = packet.payload;
    if (chance == 1 && world->lose && packet.payload.length && !pick(world, 4))
        packet.payload.pull = pick(world, 2) ? cannot_pull : pulls_first_bytes;
    packet.payload.source = &world->arriving;
    for (uint32_t times = chance == 0 ? 0 : chance == 2 ? 2 : 1; times; times--)
        rc_receive(&to->engine.rc, &packet, world->now);
    return true;
}

static void post_work(struct world *world, struct taker *taker)
{
    struct send_queue *queue = &taker->rig.engine.rc.requester.queue;
    struct send_wqe *work;
    while ((work = send_queue_reserve(queue)) && tags_work(&world->tags, &taker->port, work))
        send_queue_commit(queue);
}

/* Packets of all wires, once around; false: nothing moved. */
static bool move(struct world *world)
{
    bool moved = false;
    for (int port = 0; port < PORTS; port++) {
        moved |= carry(world, &world->senders[port], &world->takers[port].rig);
        post_work(world, &world->takers[port]);
        moved |= carry(world, &world->takers[port].rig, &world->senders[port]);
    }
    return moved;
}

static bool pass_time(struct world *world)
{
    nanos next = NANOS_NEVER;
    for (int port = 0; port < PORTS; port++) {
        nanos a = rc_deadline(&world->senders[port].engine.rc), b = rc_deadline(&world->takers[port].rig.engine.rc);
        next = a < next ? a : next;
        next = b < next ? b : next;
    }
    if (next == NANOS_NEVER)
        return false;
    world->now = next;
    for (int port = 0; port < PORTS; port++) {
        rc_expire(&world->senders[port].engine.rc, next);
        rc_expire(&world->takers[port].rig.engine.rc, next);
    }
    return true;
}

static void come_to_rest(struct world *world)
{
    for (unsigned rounds = 0; rounds < 1000000; rounds++) {
        if (!world->spares)
            world->spares = SPARE / 4;
        if (!move(world) && !pass_time(world))
            break;
    }
    assert_int_equal(world->model.rendezvous_count, 0);
    for (int port = 0; port < PORTS; port++) {
        struct rig *rig = &world->senders[port];
        assert_int_equal(rig->engine.rc.requester.queue.head, rig->engine.rc.requester.queue.tail);
        assert_int_equal(rig->failures + world->takers[port].rig.failures, 0);
        rig->ended = rig->arrived = 0;
        world->places[port] = 0;
    }
}

static void step(struct world *world)
{
    uint32_t choice = pick(world, 10);
    if (choice < 4)
        operate(world);
    else if (choice < 7)
        send(world, (int)pick(world, PORTS));
    else
        for (uint32_t times = pick(world, 20); times && move(world); times--)
            ;
    if (!pick(world, 4) && world->spares < SPARE / 4)
        world->spares++;
}

/* -- rounds */

static void connect_engines(struct world *world, int port)
{
    struct rig *sender = &world->senders[port], *taker = &world->takers[port].rig;
    rig_make(sender);
    rig_make(taker);
    if (!operations.sent) {
        operations = *taker->owner.operations;
        operations.take_receive = on_take_receive;
        operations.received = on_received;
        operations.sent = on_sent;
        drop = operations.dropped;
        operations.dropped = on_dropped;
        operations.local_memory = operations.receive_memory = on_local_memory;
    }
    taker->owner.operations = &operations;
    world->takers[port].world = world;
    world->takers[port].port = (struct tags_port){0};
    sender->engine.rc.settings.retry_count = taker->engine.rc.settings.retry_count = 200;
    sender->engine.rc.settings.rnr_retry = 7;
    rc_start_receiving(&sender->engine.rc, RIG_THEIRS);
    rc_start_transmitting(&sender->engine.rc, RIG_OURS);
    rc_start_receiving(&taker->engine.rc, RIG_OURS);
    rc_start_transmitting(&taker->engine.rc, RIG_THEIRS);
}

static void run(struct world *world, uint64_t seed)
{
    size_t size = (tags_size(LIST, 1) + 63) & ~(size_t)63;
    memset(world->list, 0, size);
    world->chance = trial_dice(seed);
    world->free_buffers = (1u << LIST) - 1;
    world->spares = world->unexpected = world->processed = 0;
    world->now = NANOS_SECOND;
    world->lose = seed % 4 ? 3 + (unsigned)(seed % 20) : 0;
    tags_initialize(&world->tags, world->list, LIST, 1);
    model_start(&world->model, LIST);
    for (int port = 0; port < PORTS; port++)
        connect_engines(world, port);
    for (int rounds = 0; rounds < 10; rounds++) {
        for (int steps = 0; steps < ROUND; steps++)
            step(world);
        come_to_rest(world);
    }
}

static void losses_change_nothing_but_time(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    world->list = aligned_alloc(64, (tags_size(LIST, 1) + 63) & ~(size_t)63);
    unsigned long rounds = trial_number("SOFTVERBS_STEPS", 100000) / (10 * ROUND),
                  only = trial_number("SOFTVERBS_SEED", 0);
    for (unsigned long seed = only ? only : 1; seed <= (only ? only : rounds); seed++)
        run(world, seed);
    if (!only) {
        assert_in_range(world->matched, rounds * 10, rounds * 1000);
        assert_in_range(world->rendezvous, rounds * 10, rounds * 1000);
        assert_in_range(world->lost, rounds * 10, rounds * 100000);
        assert_in_range(world->late, rounds / 10, rounds * 100);
    }
    free(world->list);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(losses_change_nothing_but_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
