/* Random work between three SRD engines over a network that loses, doubles and overtakes: each message arrives at most
 * once and with its bytes, and all work ends as it should. In other tests ends fail, forget and lack memory, or
 * one of them lies.
 * SOFTVERBS_SRD_SEEDS is how many seeds are run, SOFTVERBS_SRD_FIRST the first of them. */
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "transport/testing/srd_desk.h"

enum { SEEDS = 300, STEPS = 600 };

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                             IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

struct posted {
    enum ibv_wr_opcode opcode;
    unsigned to;
    uint32_t length;
};

static struct posted posted[DESK_NODES][DESK_WORKS];

static bool is_message(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void post_some(struct desk *desk)
{
    struct chance *chance = &desk->chance;
    unsigned from = (unsigned)chance_below(chance, DESK_NODES), to = (unsigned)chance_below(chance, DESK_NODES);
    enum ibv_wr_opcode opcode = opcodes[chance_below(chance, sizeof opcodes / sizeof *opcodes)];
    uint32_t most = opcode == IBV_WR_SEND_WITH_IMM ? DESK_MESSAGE : DESK_SLOT;
    uint32_t length = chance_hits(chance, 100) ? 0 : (uint32_t)chance_below(chance, most + 1);
    uint32_t id = desk_post(desk, from, to, opcode, length);
    if (id != UINT32_MAX)
        posted[from][id] = (struct posted){opcode, to, length};
}

static void step(struct desk *desk, bool rough)
{
    struct chance *chance = &desk->chance;
    unsigned what = (unsigned)chance_below(chance, 100), node = (unsigned)chance_below(chance, DESK_NODES);
    if (what < 20)
        post_some(desk);
    else if (what < 35)
        desk_post_receive(desk, node, DESK_MESSAGE);
    else if (what < 55)
        desk_transmit(desk, node);
    else if (what < 92)
        desk_deliver(desk);
    else if (what < 95 && rough)
        desk_lose(desk);
    else if (what < 98 && rough)
        desk_double(desk);
    else if (what == 99)
        desk_wait(desk);
}

static bool has_open_work(const struct desk *desk)
{
    bool open = false;
    for (unsigned i = 0; i < DESK_NODES; i++)
        open |= desk->nodes[i].ended != desk->nodes[i].works;
    return open;
}

/* All that waits for a receive gets one. */
static void finish(struct desk *desk)
{
    for (unsigned round = 0; round < 40 && has_open_work(desk); round++) {
        for (unsigned i = 0; i < DESK_NODES; i++)
            while (desk_post_receive(desk, i, DESK_MESSAGE))
                ;
        for (unsigned i = 0; i < 400 && (desk_deliver(desk) || desk_wait(desk)); i++)
            desk_transmit(desk, i % DESK_NODES);
    }
    desk_settle(desk);
}

static void judge(const struct desk *desk, uint64_t seed)
{
    for (unsigned from = 0; from < DESK_NODES; from++)
        for (uint32_t id = 0; id < desk->nodes[from].works; id++) {
            const struct posted *work = &posted[from][id];
            const struct desk_node *to = &desk->nodes[work->to];
            const uint8_t *place = work->opcode == IBV_WR_RDMA_READ ? desk->nodes[from].local + id * DESK_SLOT
                                                                    : to->remote + (from * DESK_WORKS + id) * DESK_SLOT;
            if (desk->nodes[from].ends[id] != (DESK_ENDED | IBV_WC_SUCCESS))
                fail_msg("seed %llu: work %u of %u (opcode %d, %u bytes) ended with 0x%x", (unsigned long long)seed, id,
                         from, work->opcode, work->length, desk->nodes[from].ends[id]);
            if (is_message(work->opcode) && to->arrivals[from][id] != 1)
                fail_msg("seed %llu: message %u of %u arrived %u times", (unsigned long long)seed, id, from,
                         to->arrivals[from][id]);
            if (work->opcode != IBV_WR_SEND_WITH_IMM && !desk_has(place, from, id, work->length))
                fail_msg("seed %llu: work %u of %u left other bytes", (unsigned long long)seed, id, from);
        }
}

/* With some seeds the owners hold packets back, as the adverse adapter does. */
static void hold_some_back(struct desk *desk, uint64_t seed)
{
    for (unsigned node = 0; node < DESK_NODES; node++)
        desk->nodes[node].late = seed % 5 == node ? 300 : 0;
}

static void run_seed(uint64_t seed)
{
    struct desk *desk = desk_make(seed);
    hold_some_back(desk, seed);
    for (unsigned i = 0; i < STEPS; i++)
        step(desk, seed % 4);
    finish(desk);
    if (desk->wrong)
        fail_msg("seed %llu: %s", (unsigned long long)seed, desk->what);
    judge(desk, seed);
    desk_free(desk);
}

/* ---- ends that fail ---- */

static void spoil_work(struct desk *desk, unsigned node)
{
    struct chance *chance = &desk->chance;
    struct send_queue *queue = engine_queue(&desk->nodes[node].engine);
    struct send_wqe *work = desk_work(desk, node);
    if (queue->next == queue->tail)
        return;
    work->rkey ^= chance_hits(chance, 200);
    work->remote_qkey ^= chance_hits(chance, 100);
    work->remote_qp += 0x100 * chance_hits(chance, 100);
    work->sge[0].lkey ^= chance_hits(chance, 100);
}

static void disturb(struct desk *desk)
{
    struct chance *chance = &desk->chance;
    unsigned index = (unsigned)chance_below(chance, DESK_NODES);
    struct desk_node *node = &desk->nodes[index];
    switch (chance_below(chance, 13)) {
    case 0:
        return desk_retry(node, (uint8_t)chance_below(chance, 8));
    case 1:
        return (void)(node->deaf = chance_hits(chance, 200));
    case 2:
        return (void)(node->absent = chance_hits(chance, 200));
    case 3:
        return (void)(node->withdrawn = chance_hits(chance, 200));
    case 4:
        return (void)(node->closed = chance_hits(chance, 300));
    case 5:
        return (void)(node->knows_none = chance_hits(chance, 200));
    case 6:
        return (void)(node->blocks_most = chance_hits(chance, 400) ? node->block_count : DESK_BLOCKS);
    case 7:
        return engine_drain(&node->engine, chance_hits(chance, 400));
    case 8:
        if (chance_hits(chance, 500))
            engine_forget_address(&node->engine, &desk->nodes[chance_below(chance, DESK_NODES)]);
        return;
    case 9:
        if (chance_hits(chance, 30))
            engine_flush(&node->engine);
        return;
    case 10:
        if (chance_hits(chance, 200))
            desk_reset(desk, index);
        return;
    case 11:
        return (void)desk_post_receive(desk, index, (uint32_t)chance_below(chance, DESK_MESSAGE));
    default:
        return spoil_work(desk, index);
    }
}

static void heal(struct desk *desk)
{
    for (unsigned i = 0; i < DESK_NODES; i++) {
        struct desk_node *node = &desk->nodes[i];
        node->deaf = node->absent = node->withdrawn = node->closed = node->knows_none = false;
        node->blocks_most = DESK_BLOCKS;
        engine_drain(&node->engine, false);
        if (node->engine.unreliable.failed)
            desk_reset(desk, i);
    }
}

/* Work that ended with success was done, once; any other may have been done, but not twice. */
static void judge_successes(const struct desk *desk, uint64_t seed)
{
    for (unsigned from = 0; from < DESK_NODES; from++)
        for (uint32_t id = 0; id < desk->nodes[from].works; id++) {
            const struct posted *work = &posted[from][id];
            const struct desk_node *to = &desk->nodes[work->to];
            bool reads = work->opcode == IBV_WR_RDMA_READ;
            const uint8_t *place =
                reads ? desk->nodes[from].local + id * DESK_SLOT : to->remote + (from * DESK_WORKS + id) * DESK_SLOT;
            if (!desk->nodes[from].ends[id])
                fail_msg("seed %llu: work %u of %u never ended", (unsigned long long)seed, id, from);
            if (desk->nodes[from].ends[id] != (DESK_ENDED | IBV_WC_SUCCESS))
                continue;
            if (is_message(work->opcode) && to->arrivals[from][id] != 1)
                fail_msg("seed %llu: message %u of %u arrived %u times", (unsigned long long)seed, id, from,
                         to->arrivals[from][id]);
            if (work->opcode != IBV_WR_SEND_WITH_IMM && !desk_has(place, from, id, work->length))
                fail_msg("seed %llu: work %u of %u left other bytes", (unsigned long long)seed, id, from);
        }
}

static void run_rough_seed(uint64_t seed)
{
    struct desk *desk = desk_make(seed);
    hold_some_back(desk, seed);
    for (unsigned i = 0; i < 3 * STEPS; i++) {
        step(desk, true);
        if (chance_hits(&desk->chance, 30))
            disturb(desk);
        if (seed % 8 == 0 && i == STEPS)
            for (unsigned node = 0; node < DESK_NODES; node++)
                desk->nodes[node].engine.srd.responder->count = desk->nodes[node].engine.srd.requester->flow_count =
                    SRD_PEERS;
    }
    heal(desk);
    finish(desk);
    if (desk->wrong)
        fail_msg("seed %llu: %s", (unsigned long long)seed, desk->what);
    judge_successes(desk, seed);
    desk_free(desk);
}

/* ---- a peer that lies ---- */

enum { LIAR = DESK_NODES - 1 };

static void forge_payload(struct chance *chance, struct desk_packet *flying)
{
    struct payload *payload = &flying->packet.payload;
    payload->length = (uint32_t)chance_below(chance, chance_hits(chance, 500) ? 70 : sizeof flying->bytes + 1);
    payload->count = payload->length > 0;
    flying->piece.iov_len = payload->length;
    for (uint32_t at = 0; at < payload->length; at++)
        flying->bytes[at] = (uint8_t)chance_below(chance, chance_hits(chance, 900) ? 16 : 256);
}

static void forge_operation(struct chance *chance, struct packet *packet)
{
    uint8_t opcode = op_code(SERVICE_SRD, (enum operation)chance_below(chance, 32));
    if (!op_find(opcode))
        return;
    packet->opcode = opcode;
    packet->address = LIAR * DESK_WORKS * DESK_SLOT; /* of its own bytes */
    packet->rkey = DESK_KEY;
    packet->qkey = DESK_QKEY;
}

/* A small step, or anything. */
static void forge_number(struct chance *chance, uint32_t *number)
{
    *number =
        chance_hits(chance, 800) ? *number + (uint32_t)chance_below(chance, 200) - 100 : (uint32_t)chance_next(chance);
}

static void lie(struct desk *desk)
{
    struct chance *chance = &desk->chance;
    struct desk_packet *flying = &desk->flying[chance_below(chance, DESK_FLYING)];
    struct packet *packet = &flying->packet;
    if (!flying->flies || flying->from != LIAR || flying->to == LIAR)
        return;
    switch (chance_below(chance, 8)) {
    case 0:
        return forge_number(chance, &packet->srd.number);
    case 1:
        return forge_number(chance, &packet->srd.floor);
    case 2:
        packet->srd.floor = (uint32_t)chance_below(chance, 16);
        return;
    case 3:
        return forge_number(chance, chance_hits(chance, 500) ? &packet->srd.cookie : &packet->srd.epoch);
    case 4:
        return forge_operation(chance, packet);
    case 5:
        return forge_payload(chance, flying);
    case 6:
        packet->length = (uint32_t)chance_next(chance) >> chance_below(chance, 32);
        return;
    default:
        forge_number(chance, &packet->srd.number);
        packet->srd.floor = packet->srd.number - (uint32_t)chance_below(chance, SRD_WINDOW);
    }
}

/* All work of the others ends, and what they do to each other is right. */
static void judge_victims(const struct desk *desk, uint64_t seed)
{
    for (unsigned from = 0; from < LIAR; from++)
        for (uint32_t id = 0; id < desk->nodes[from].works; id++) {
            uint8_t end = desk->nodes[from].ends[id];
            if (!end)
                fail_msg("seed %llu: work %u of %u never ended", (unsigned long long)seed, id, from);
            const struct posted *work = &posted[from][id];
            if (work->to == LIAR)
                continue;
            if (end != (DESK_ENDED | IBV_WC_SUCCESS))
                fail_msg("seed %llu: work %u of %u ended with 0x%x", (unsigned long long)seed, id, from, end);
            if (is_message(work->opcode) && desk->nodes[work->to].arrivals[from][id] != 1)
                fail_msg("seed %llu: message %u of %u arrived not once", (unsigned long long)seed, id, from);
        }
}

static void run_lying_seed(uint64_t seed)
{
    struct desk *desk = desk_make(seed);
    desk->last_lies = true;
    for (unsigned i = 0; i < 3 * STEPS; i++) {
        step(desk, true);
        for (unsigned turn = 0; turn < 1u << seed % 8; turn++)
            lie(desk);
        while (desk->flying_count > DESK_FLYING / 2) /* a full network would lose the others' packets */
            desk_deliver(desk);
    }
    finish(desk);
    if (desk->wrong)
        fail_msg("seed %llu: %s", (unsigned long long)seed, desk->what);
    judge_victims(desk, seed);
    desk_free(desk);
}

static void run_seeds(void (*run)(uint64_t))
{
    const char *wanted = getenv("SOFTVERBS_SRD_SEEDS"), *first = getenv("SOFTVERBS_SRD_FIRST");
    uint64_t seeds = wanted ? strtoull(wanted, NULL, 10) : SEEDS, start = first ? strtoull(first, NULL, 10) : 1;
    for (uint64_t seed = start; seed < start + seeds; seed++)
        run(seed);
}

static void all_work_ends_once_over_a_network_that_loses_and_doubles(void **state)
{
    (void)state;
    run_seeds(run_seed);
}

static void work_that_succeeds_was_done_once_whatever_else_fails(void **state)
{
    (void)state;
    run_seeds(run_rough_seed);
}

static void a_peer_that_lies_harms_its_own_work_alone(void **state)
{
    (void)state;
    run_seeds(run_lying_seed);
}

TESTS(a_peer_that_lies_harms_its_own_work_alone, all_work_ends_once_over_a_network_that_loses_and_doubles,
      work_that_succeeds_was_done_once_whatever_else_fails)
