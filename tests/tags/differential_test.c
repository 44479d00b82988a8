/* The same random sequences through the public API, between processes: senders are children of the receiver, which asks
 * the model what each completion must be, and looks at every byte. SOFTVERBS_STEPS steps (100000) from SOFTVERBS_SEED.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "room.h"
#include "transport/testing/tags_trial.h"

enum {
    SENDERS = 3,
    LIST = 32,
    LEAST = 20000,
    SLOT = 24576,
    PLACES = 64,
    RECEIVES = 64,
    BATCH = 4,
    EXPECTED = 64,
    PACKET = 16384
};

/* -- the sender's process */

struct command {
    uint8_t opcode, fill;
    uint32_t application, length;
    uint64_t tag;
};

struct introduction {
    uint32_t number;
    union ibv_gid gid;
};

static bool transfer(int fd, void *bytes, size_t size, bool out)
{
    return (out ? write(fd, bytes, size) : read(fd, bytes, size)) == (ssize_t)size;
}

static void obey(struct room *room, const struct command *command, uint32_t place)
{
    uint32_t head = place * 64, data = 65536 + place * SLOT;
    if (command->opcode == IBV_TMH_RNDV) {
        room_rendezvous_head(room, room_upper(room, head), command->application, command->tag, data, command->length);
        memset(room_upper(room, data), command->fill, command->length);
        room_send(room, 0, 0, head, HEAD);
        return;
    }
    room_head(room_upper(room, data), command->opcode, command->application, command->tag);
    memset(room_upper(room, data + TMH), command->fill, command->length);
    room_send(room, 0, 0, data, TMH + command->length);
}

/* A place is used again when its message has surely been delivered: there are more than can be in flight. */
static int send_all(int fd)
{
    struct room room;
    struct command command;
    struct introduction mine, peer;
    uint32_t place = 0;
    if (!room_open(&room, 1, 1) || !room_connect(&room, 0))
        return 1;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    mine.number = room.senders[0].qp->qp_num;
    ibv_query_gid(room.context, 1, 0, &mine.gid);
    if (!transfer(fd, &mine, sizeof mine, true) || !transfer(fd, &peer, sizeof peer, false) ||
        ibv_modify_qp(room.senders[0].qp, &reset, IBV_QP_STATE) ||
        !room_join(room.senders[0].qp, peer.number, &peer.gid))
        return 1;
    for (uint32_t i = 0; i < PLACES; i++)
        room_post_finish(&room, 0, i, 32768 + i * HEAD);
    while (transfer(fd, &command, sizeof command, false)) {
        struct ibv_wc wc;
        obey(&room, &command, place++ % PLACES);
        do {
            if (!room_sender_wait(&room, &wc) || wc.status)
                return 1;
            if (wc.opcode == IBV_WC_RECV)
                room_post_finish(&room, 0, wc.wr_id, 32768 + (uint32_t)wc.wr_id * HEAD);
        } while (wc.opcode == IBV_WC_RECV);
    }
    return 0;
}

/* -- the receiver */

struct world {
    struct room room;
    struct model model;
    uint64_t chance;
    int fds[SENDERS];
    struct ibv_qp *qps[SENDERS];
    struct model_event expected[EXPECTED];
    uint8_t fills[EXPECTED];
    unsigned first, last;
    uint8_t buffer_fills[LIST]; /* of rendezvous */
    uint32_t ids;               /* buffers are used in turn; those in use are not in this set */
    uint32_t handles[LIST];
    uint32_t receive;
    uint32_t processed;
    unsigned matched, unexpected, rendezvous, incomplete;
};

static uint32_t pick(struct world *world, uint32_t below)
{
    return trial_pick(&world->chance, below);
}

static void expect(struct world *world, const struct model_event *event, uint8_t fill)
{
    world->expected[world->last % EXPECTED] = *event;
    world->fills[world->last++ % EXPECTED] = fill;
}

static void compare(const struct room_event *event, const struct model_event *expected)
{
    TRIAL_COMPARE(event, expected);
}

static void look_at(const uint8_t *bytes, uint32_t length, uint8_t fill)
{
    uint32_t at = 0;
    while (at < length && bytes[at] == fill)
        at++;
    assert_int_equal(at, length);
}

static uint8_t *buffer_at(struct world *world, uint64_t id)
{
    return world->room.memory + id * SLOT;
}

static void finish_rendezvous(struct world *world, const struct room_event *event)
{
    struct model_event expected;
    model_rendezvous_end(&world->model, event->id, IBV_WC_SUCCESS, &expected);
    compare(event, &expected);
    look_at(buffer_at(world, event->id), event->length, world->buffer_fills[event->id]);
    world->ids |= 1u << event->id;
    world->rendezvous++;
}

/* A message, or an operation; ids from 1000 on are ordinary receives, from 100 on operations. */
static void take_event(struct world *world, const struct room_event *event)
{
    uint8_t fill = world->fills[world->first % EXPECTED];
    assert_int_not_equal(world->first, world->last);
    compare(event, &world->expected[world->first++ % EXPECTED]);
    if (event->opcode == IBV_WC_TM_RECV && event->flags & IBV_WC_TM_DATA_VALID) {
        look_at(buffer_at(world, event->id), event->length, fill);
        world->ids |= 1u << event->id;
        world->matched++;
    } else if (event->status == IBV_WC_TM_RNDV_INCOMPLETE) {
        world->ids |= 1u << event->id;
        world->incomplete++;
    } else if (event->status == IBV_WC_SUCCESS && event->opcode == IBV_WC_TM_RECV &&
               !(event->flags & IBV_WC_TM_MATCH)) {
        world->unexpected++;
    }
}

/* The end of one, which may be at any time. */
static bool is_of_rendezvous(const struct world *world, const struct room_event *event)
{
    bool found = false;
    for (uint32_t i = 0; i < world->model.rendezvous_count; i++)
        found |= world->model.rendezvous[i].id == event->id;
    return found && event->opcode == IBV_WC_TM_RECV && event->flags == IBV_WC_TM_DATA_VALID;
}

static void settle(struct world *world)
{
    struct room_event event;
    while (world->first != world->last) {
        assert_true(room_wait(&world->room, &event));
        if (is_of_rendezvous(world, &event))
            finish_rendezvous(world, &event);
        else
            take_event(world, &event);
    }
}

static uint64_t pick_tag(struct world *world)
{
    return (uint64_t)pick(world, 3) << 40 | pick(world, 3);
}

static uint64_t pick_mask(struct world *world)
{
    static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX, 0xffffffff, 0xffffffff00000000, 0};
    return masks[pick(world, sizeof masks / sizeof *masks)];
}

static void fill_operation(struct world *world, struct ibv_ops_wr *wr, struct ibv_sge *sge)
{
    uint32_t choice = pick(world, 10), id = (uint32_t)__builtin_ffs((int)world->ids);
    wr->wr_id = 100;
    wr->flags = (int)pick(world, 4);
    wr->tm.unexpected_cnt = pick(world, 3) ? world->unexpected : world->processed;
    if (choice == 0) {
        wr->opcode = IBV_WR_TAG_SYNC;
    } else if (choice < 3 || !id) {
        wr->opcode = IBV_WR_TAG_DEL;
        wr->tm.handle = world->handles[pick(world, LIST)];
    } else {
        wr->opcode = IBV_WR_TAG_ADD;
        wr->tm.add.mask = pick_mask(world);
        wr->tm.add.tag = pick_tag(world) & wr->tm.add.mask;
        wr->tm.add.recv_wr_id = id - 1;
        wr->tm.add.sg_list = sge;
        wr->tm.add.num_sge = 1;
        *sge = (struct ibv_sge){.addr = (uintptr_t)buffer_at(world, id - 1),
                                .length = LEAST + pick(world, SLOT - LEAST),
                                .lkey = world->room.mr->lkey};
    }
}

static void operate(struct world *world)
{
    struct ibv_sge sge;
    struct ibv_ops_wr wr = {0}, *bad;
    struct model_event expected;
    bool completes;
    uint32_t deleted = UINT32_MAX;
    fill_operation(world, &wr, &sge);
    for (uint32_t i = 0; i < world->model.count && wr.opcode == IBV_WR_TAG_DEL; i++)
        if (world->model.list[i].handle == wr.tm.handle)
            deleted = (uint32_t)world->model.list[i].id;
    int error = ibv_post_srq_ops(world->room.srq, &wr, &bad);
    assert_int_equal(error, model_operate(&world->model, &wr, &expected, &completes));
    if (error)
        return;
    if (wr.flags & IBV_OPS_TM_SYNC)
        world->processed = wr.tm.unexpected_cnt;
    if (wr.opcode == IBV_WR_TAG_ADD) {
        world->ids &= ~(1u << wr.tm.add.recv_wr_id);
        world->handles[pick(world, LIST)] = wr.tm.handle;
    } else if (deleted != UINT32_MAX)
        world->ids |= 1u << deleted;
    if (completes)
        expect(world, &expected, 0);
    settle(world);
}

static void send_one(struct world *world, int sender)
{
    static const uint8_t opcodes[] = {IBV_TMH_EAGER, IBV_TMH_EAGER, IBV_TMH_RNDV, IBV_TMH_RNDV, IBV_TMH_NO_TAG};
    uint8_t bytes[64];
    struct model_event expected;
    struct command command = {.opcode = opcodes[pick(world, sizeof opcodes)],
                              .fill = (uint8_t)pick(world, 256),
                              .application = pick(world, 1000),
                              .tag = pick_tag(world)};
    bool large = !pick(world, 10), rendezvous = command.opcode == IBV_TMH_RNDV;
    command.length = pick(world, rendezvous ? (large ? SLOT : LEAST) : large ? LEAST : 500);
    room_rendezvous_head(&world->room, bytes, command.application, command.tag, 0, command.length);
    bytes[0] = command.opcode;
    uint32_t length = rendezvous ? HEAD : TMH + command.length;
    assert_true(model_begin(&world->model, sender, bytes, length, length <= PACKET, true));
    bool tagged = world->model.open[sender].tagged;
    uint64_t buffer = world->model.open[sender].entry.id;
    uint64_t receive = 1000 + world->receive % RECEIVES;
    if (!tagged)
        room_post(&world->room, receive, ROOM_HALF / 2 + world->receive++ % RECEIVES * SLOT, SLOT);
    if (tagged)
        world->buffer_fills[buffer] = command.fill;
    if (model_matches(&world->model, sender, &expected))
        expect(world, &expected, command.fill);
    model_end(&world->model, sender, receive, length, IBV_WC_SUCCESS, &expected);
    expect(world, &expected, command.fill);
    assert_true(transfer(world->fds[sender], &command, sizeof command, true));
}

static void step(struct world *world)
{
    if (pick(world, 5) < 3) {
        operate(world);
        return;
    }
    int sender = (int)pick(world, SENDERS);
    for (uint32_t count = 1 + pick(world, BATCH); count; count--)
        send_one(world, sender);
    settle(world);
}

static void start(struct world *world, int sender)
{
    struct introduction peer, mine;
    assert_true(transfer(world->fds[sender], &peer, sizeof peer, false));
    world->qps[sender] = room_make_tm_qp(&world->room, 0);
    mine.number = world->qps[sender]->qp_num;
    ibv_query_gid(world->room.context, 1, 0, &mine.gid);
    assert_true(room_join(world->qps[sender], peer.number, &peer.gid));
    assert_true(transfer(world->fds[sender], &mine, sizeof mine, true));
}

static struct world world;

static void every_completion_and_every_byte_is_the_models(void **state)
{
    unsigned long steps = trial_number("SOFTVERBS_STEPS", 100000);
    struct room_event event;
    world.chance = trial_dice(trial_number("SOFTVERBS_SEED", 1));
    world.ids = UINT32_MAX;
    assert_true(room_open(&world.room, LIST, 1024));
    model_start(&world.model, LIST);
    for (int i = 0; i < SENDERS; i++)
        start(&world, i);
    for (unsigned long i = 0; i < steps; i++)
        step(&world);
    while (world.model.rendezvous_count) {
        assert_true(room_wait(&world.room, &event));
        finish_rendezvous(&world, &event);
    }
    assert_in_range(world.matched, steps / 20, steps * BATCH);
    assert_in_range(world.unexpected, steps / 20, steps * BATCH);
    assert_in_range(world.rendezvous, steps / 20, steps * BATCH);
    assert_in_range(world.incomplete, steps / 1000, steps);
    for (int i = 0; i < SENDERS; i++)
        ibv_destroy_qp(world.qps[i]);
    room_close(&world.room);
}

/* The children are made before any device is open. */
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_completion_and_every_byte_is_the_models)};
    for (int i = 0; i < SENDERS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            return 1;
        if (!fork()) {
            for (int before = 0; before < i; before++)
                close(world.fds[before]);
            close(pair[0]);
            _exit(send_all(pair[1]));
        }
        close(pair[1]);
        world.fds[i] = pair[0];
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < SENDERS; i++) {
        int status = 1;
        close(world.fds[i]);
        wait(&status);
        failed += status != 0;
    }
    return failed;
}
