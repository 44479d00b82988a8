/* Random sequences against the model: every completion is compared. SOFTVERBS_STEPS steps (100000), each thousand of
 * them from another seed; SOFTVERBS_SEED runs one alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/testing/tags_desk.h"
#include "transport/testing/tags_trial.h"

enum { LIST = 24, PORTS = 4, ROUND = 1000, KEPT = 64, FLIGHTS = 256 };

struct flight {
    uint64_t id;
    int port;
    bool finishing;
    struct send_wqe work;
};

struct world {
    uint64_t chance;
    struct tags tags;
    struct model model;
    struct tags_port ports[PORTS];
    void *memory;
    uint64_t next_id;
    uint32_t handles[KEPT]; /* of the last ADDs; most may still be there */
    uint16_t processed;     /* unexpected messages, by software */
    uint32_t backlog;       /* unexpected messages that software has not looked at */
    struct flight flights[FLIGHTS];
    int flying;
    uint32_t tagged, unexpected, rendezvous, errors; /* the cases that the seeds have exercised */
};

static uint32_t pick(struct world *world, uint32_t below)
{
    return trial_pick(&world->chance, below);
}

static void compare(struct world *world, const struct tags_event *event, const struct model_event *expected)
{
    world->errors += event->status != IBV_WC_SUCCESS;
    TRIAL_COMPARE(event, expected);
}

static uint64_t pick_tag(struct world *world)
{
    return (uint64_t)pick(world, 4) << 40 | pick(world, 4);
}

static uint64_t pick_mask(struct world *world)
{
    static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0xffffffff, 0xffffffff00000000, 0, 1};
    return masks[pick(world, sizeof(masks) / sizeof(*masks))];
}

static void choose_operation(struct world *world, struct ibv_ops_wr *wr, struct ibv_sge *sges)
{
    uint32_t choice = pick(world, 20);
    wr->wr_id = ++world->next_id;
    wr->flags = (int)pick(world, 4);
    wr->tm.unexpected_cnt = world->processed + (pick(world, 16) ? 0 : pick(world, 3));
    if (choice == 0) {
        wr->opcode = IBV_WR_TAG_SYNC;
    } else if (choice < 5) {
        wr->opcode = IBV_WR_TAG_DEL;
        wr->tm.handle = pick(world, 10) ? world->handles[pick(world, KEPT)] : pick(world, 1000);
    } else {
        wr->opcode = IBV_WR_TAG_ADD;
        wr->tm.add.mask = pick_mask(world);
        wr->tm.add.tag = pick_tag(world) & (pick(world, 20) ? wr->tm.add.mask : UINT64_MAX);
        wr->tm.add.recv_wr_id = ++world->next_id;
        wr->tm.add.sg_list = sges;
        wr->tm.add.num_sge = (int)pick(world, SGES + 1);
        for (int i = 0; i < wr->tm.add.num_sge; i++)
            sges[i] = (struct ibv_sge){.length = pick(world, 200), .lkey = (uint32_t)i};
    }
}

static void compare_lists(const struct world *world)
{
    uint32_t disabled = 0;
    for (uint32_t i = 0; i < world->model.count; i++)
        disabled += !world->model.list[i].enabled;
    assert_int_equal(world->tags.list.count, world->model.count);
    assert_int_equal(world->tags.disabled, disabled);
}

static void operates(struct world *world)
{
    struct ibv_sge sges[SGES];
    struct ibv_ops_wr wr = {0};
    struct tags_event event;
    struct model_event expected;
    bool completes, should;
    choose_operation(world, &wr, sges);
    enum reason reason = tags_operate(&world->tags, &wr, &event, &completes);
    int error = model_operate(&world->model, &wr, &expected, &should);
    assert_int_equal(reason == REASON_TM_LIST_FULL ? ENOMEM : reason ? EINVAL : 0, error);
    if (error)
        return;
    assert_int_equal(completes, should);
    if (completes)
        compare(world, &event, &expected);
    compare_lists(world);
    if (wr.opcode == IBV_WR_TAG_ADD)
        world->handles[pick(world, KEPT)] = wr.tm.handle;
}

/* -- messages */

static void choose_message(struct world *world, struct message *message)
{
    static const uint8_t opcodes[] = {IBV_TMH_EAGER, IBV_TMH_EAGER, IBV_TMH_EAGER, IBV_TMH_RNDV,
                                      IBV_TMH_RNDV,  IBV_TMH_RNDV,  IBV_TMH_NO_TAG};
    *message = rendezvous(pick_tag(world), pick(world, 250));
    message->bytes[0] = opcodes[pick(world, sizeof(opcodes))];
    if (!pick(world, 20))
        message->bytes[0] = (uint8_t)pick(world, 256);
    message->operation = pick(world, 5) ? OPERATION_SEND_ONLY : OPERATION_SEND_FIRST;
    message->length = message->bytes[0] == IBV_TMH_RNDV ? TAGS_HEAD + pick(world, 32) : TAGS_TMH + pick(world, 80);
    if (!pick(world, 20))
        message->length = pick(world, 80);
}

static void dies(struct world *world, int port);

static void message_ends(struct world *world, int port, uint32_t length, bool alive)
{
    struct recv_cqe arrival = {.status = alive ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR,
                               .reason = alive ? REASON_NONE : REASON_FLUSHED,
                               .opcode = IBV_WC_RECV,
                               .length = length};
    struct tags_event event;
    struct model_event expected;
    uint64_t id = ++world->next_id;
    bool untagged = model_is_untagged(&world->model, port);
    assert_int_equal(!tags_receive(&world->tags, &world->ports[port]), untagged);
    tags_received(&world->tags, &world->ports[port], id, &arrival, &event);
    model_end(&world->model, port, id, length, arrival.status, &expected);
    compare(world, &event, &expected);
    bool unexpected = untagged && event.opcode == IBV_WC_TM_RECV && event.status == IBV_WC_SUCCESS;
    world->tagged += !untagged;
    world->unexpected += unexpected;
    world->backlog += unexpected;
    if (!alive)
        dies(world, port);
}

static void message_arrives(struct world *world, int port)
{
    struct message message;
    struct tags_port *at = &world->ports[port];
    choose_message(world, &message);
    struct iovec piece = {message.bytes, sizeof(message.bytes)};
    struct packet packet = {.opcode = op_code(SERVICE_RC, message.operation),
                            .payload = {.length = message.length, .count = 1, .pieces = &piece}};
    bool whole = message.operation == OPERATION_SEND_ONLY, has_receive = pick(world, 20);
    enum tags_kind kind = tags_arrive(&world->tags, at, &packet);
    if (kind < TAGS_EAGER && has_receive)
        tags_accept(&world->tags, at, kind);
    bool arrived = model_begin(&world->model, port, message.bytes, message.length, whole, has_receive);
    assert_int_equal(kind >= TAGS_EAGER || has_receive, arrived);
    struct tags_event event;
    struct model_event expected;
    bool matches = tags_match(&world->tags, at, &packet, &event);
    assert_int_equal(matches, arrived && model_matches(&world->model, port, &expected));
    if (matches)
        compare(world, &event, &expected);
    if (arrived && whole)
        message_ends(world, port, message.length, true);
}

/* -- rendezvous */

static struct flight *find_flight(struct world *world, int port)
{
    int start = (int)pick(world, FLIGHTS);
    for (int i = 0; i < world->flying; i++) {
        struct flight *flight = &world->flights[(start + i) % world->flying];
        if (flight->port == port)
            return flight;
    }
    return NULL;
}

static void begins_work(struct world *world, int port)
{
    uint64_t ids[MODEL_ENTRIES], at[(sizeof(struct send_wqe) + 256) / 8];
    struct send_wqe *work = (struct send_wqe *)at;
    uint32_t count = model_rendezvous_of(&world->model, port, ids);
    int flying = 0;
    for (int i = 0; i < world->flying; i++)
        flying += world->flights[i].port == port;
    assert_int_equal(tags_have_work(&world->ports[port]), flying < (int)count);
    if (!tags_work(&world->tags, &world->ports[port], work))
        return;
    uint32_t length = 0;
    for (int i = 0; i < work->sge_count; i++)
        length += work->sge[i].length;
    assert_true(work->opcode == IBV_WR_SEND || length == work->length);
    world->rendezvous++;
    world->flights[world->flying++] =
        (struct flight){.id = work->id, .port = port, .finishing = work->opcode == IBV_WR_SEND, .work = *work};
}

static void ends_work(struct world *world, int port, enum ibv_wc_status status)
{
    struct flight *found = find_flight(world, port);
    struct tags_event event;
    struct model_event expected;
    if (!found)
        return;
    struct flight flight = *found;
    *found = world->flights[--world->flying];
    bool ended = tags_sent(&world->tags, &world->ports[port], &flight.work, status,
                           status ? REASON_REMOTE_ACCESS : REASON_NONE, &event);
    assert_int_equal(ended, flight.finishing || status);
    if (!ended)
        return;
    model_rendezvous_end(&world->model, flight.id, status, &expected);
    compare(world, &event, &expected);
    if (status && status != IBV_WC_WR_FLUSH_ERR)
        dies(world, port);
}

/* The queue pair fails, or is destroyed: everything of it ends, in any order. It is made anew at once. */
static void dies(struct world *world, int port)
{
    uint64_t ids[MODEL_ENTRIES];
    struct tags_event event;
    struct model_event expected;
    if (world->model.open[port].open)
        message_ends(world, port, 0, false);
    while (pick(world, 3) && find_flight(world, port))
        ends_work(world, port, IBV_WC_WR_FLUSH_ERR);
    for (int i = world->flying; i-- > 0;)
        if (world->flights[i].port == port)
            world->flights[i] = world->flights[--world->flying];
    while (tags_flush(&world->tags, &world->ports[port], &event)) {
        model_rendezvous_end(&world->model, event.id, IBV_WC_WR_FLUSH_ERR, &expected);
        compare(world, &event, &expected);
    }
    assert_int_equal(model_rendezvous_of(&world->model, port, ids), 0);
}

static void step(struct world *world)
{
    int port = (int)pick(world, PORTS);
    bool open = world->model.open[port].open;
    switch (pick(world, 10)) {
    case 0 ... 3:
        return operates(world);
    case 4 ... 6:
        return open ? message_ends(world, port, 200 + pick(world, 1000), pick(world, 20))
                    : message_arrives(world, port);
    case 7:
        return begins_work(world, port);
    case 8:
        return ends_work(world, port, pick(world, 20) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
    default:
        if (!pick(world, 50))
            dies(world, port);
        uint32_t some = pick(world, world->backlog + 1);
        world->processed += some;
        world->backlog -= some;
    }
}

static void run(struct world *world, uint64_t seed, unsigned steps)
{
    size_t size = (tags_size(LIST, SGES) + 63) & ~(size_t)63;
    memset(world->memory, 0, size);
    memset(world->ports, 0, sizeof(world->ports));
    world->chance = trial_dice(seed);
    world->flying = 0;
    world->backlog = world->processed = 0;
    tags_initialize(&world->tags, world->memory, LIST, SGES);
    model_start(&world->model, LIST);
    while (steps--)
        step(world);
}

static void every_completion_is_the_models(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    world->memory = aligned_alloc(64, (tags_size(LIST, SGES) + 63) & ~(size_t)63);
    unsigned long rounds = trial_number("SOFTVERBS_STEPS", 100000) / ROUND, only = trial_number("SOFTVERBS_SEED", 0);
    for (unsigned long seed = only ? only : 1; seed <= (only ? only : rounds); seed++) {
        if (getenv("SOFTVERBS_SEED_SHOWN"))
            print_message("# seed %lu\n", seed);
        run(world, seed, ROUND);
    }
    if (!only && rounds >= 100) { /* the sequences are such that everything happens often */
        assert_in_range(world->tagged, rounds * 20, rounds * ROUND);
        assert_in_range(world->unexpected, rounds * 20, rounds * ROUND);
        assert_in_range(world->rendezvous, rounds * 10, rounds * ROUND);
        assert_in_range(world->errors, rounds * 10, rounds * ROUND);
    }
    free(world->memory);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_completion_is_the_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
