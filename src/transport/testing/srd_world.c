#include "transport/testing/srd_world.h"

#include <stdarg.h>
#include <stdio.h>

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                             IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

struct posted {
    enum ibv_wr_opcode opcode;
    unsigned to;
    uint32_t length;
};

static struct posted posted[DESK_NODES][DESK_WORKS];

/* ---- steps ---- */

void world_post(struct desk *desk)
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

/* Some are late beyond the end of all repeats. */
static void change_path(struct desk *desk)
{
    struct chance *chance = &desk->chance;
    unsigned from = (unsigned)chance_below(chance, DESK_NODES), to = (unsigned)chance_below(chance, DESK_NODES);
    desk_change_path(desk, from, to, (nanos)chance_below(chance, (uint64_t)SRD_WAIT << chance_below(chance, 14)));
}

void world_step(struct desk *desk, bool rough)
{
    struct chance *chance = &desk->chance;
    unsigned what = (unsigned)chance_below(chance, 100), node = (unsigned)chance_below(chance, DESK_NODES);
    if (what < 20)
        world_post(desk);
    else if (what < 35)
        desk_post_receive(desk, node, DESK_MESSAGE);
    else if (what < 55)
        desk_transmit(desk, node);
    else if (what < 92)
        desk_deliver(desk);
    else if (what < 95 && rough)
        desk_lose(desk);
    else if (what < 97 && rough)
        desk_double(desk);
    else if (what < 98 && rough && chance_hits(chance, 50))
        change_path(desk);
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

void world_finish(struct desk *desk)
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

void world_disturb(struct desk *desk)
{
    struct chance *chance = &desk->chance;
    unsigned index = (unsigned)chance_below(chance, DESK_NODES);
    struct desk_node *node = &desk->nodes[index];
    switch (chance_below(chance, 14)) {
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
    case 12:
        if (chance_hits(chance, 200))
            desk_kill(desk, index);
        node->absent |= chance_hits(chance, 100);
        return;
    case 11:
        return (void)desk_post_receive(desk, index, (uint32_t)chance_below(chance, DESK_MESSAGE));
    default:
        return spoil_work(desk, index);
    }
}

void world_heal(struct desk *desk)
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

/* ---- a peer that lies ---- */

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
    packet->address = WORLD_LIAR * DESK_WORKS * DESK_SLOT; /* of its own bytes */
    packet->rkey = DESK_KEY;
    packet->qkey = DESK_QKEY;
}

/* A small step, or anything. */
static void forge_number(struct chance *chance, uint32_t *number)
{
    *number =
        chance_hits(chance, 800) ? *number + (uint32_t)chance_below(chance, 200) - 100 : (uint32_t)chance_next(chance);
}

void world_lie(struct desk *desk)
{
    struct chance *chance = &desk->chance;
    struct desk_packet *flying = &desk->flying[chance_below(chance, DESK_FLYING)];
    struct packet *packet = &flying->packet;
    if (!flying->flies || flying->from != WORLD_LIAR || flying->to == WORLD_LIAR)
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

/* ---- judges ---- */

static bool is_message(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static char verdict[160];

static const char *blame(unsigned from, uint32_t id, const char *format, ...) __attribute__((format(printf, 3, 4)));
static const char *blame(unsigned from, uint32_t id, const char *format, ...)
{
    const struct posted *work = &posted[from][id];
    va_list arguments;
    int length = snprintf(verdict, sizeof verdict, "work %u of %u to %u (opcode %d, %u bytes) ", id, from, work->to,
                          (int)work->opcode, work->length);
    va_start(arguments, format);
    vsnprintf(verdict + length, sizeof verdict - (size_t)length, format, arguments);
    va_end(arguments);
    return verdict;
}

/* Work that ended with success was done, once; any other may have been done, but not twice. */
static const char *judge_success(const struct desk *desk, unsigned from, uint32_t id)
{
    const struct posted *work = &posted[from][id];
    const struct desk_node *to = &desk->nodes[work->to];
    bool reads = work->opcode == IBV_WR_RDMA_READ;
    const uint8_t *place =
        reads ? desk->nodes[from].local + id * DESK_SLOT : to->remote + (from * DESK_WORKS + id) * DESK_SLOT;
    if (is_message(work->opcode) && to->arrivals[from][id] != 1)
        return blame(from, id, "arrived %u times", to->arrivals[from][id]);
    if (work->opcode != IBV_WR_SEND_WITH_IMM && !desk_has(place, from, id, work->length))
        return blame(from, id, "left other bytes");
    return NULL;
}

static const char *judge_work(const struct desk *desk, unsigned from, uint32_t id, enum world_rule rule)
{
    uint8_t end = desk->nodes[from].ends[id];
    bool lied_to = rule == WORLD_LIES && posted[from][id].to == WORLD_LIAR;
    if (!end)
        return blame(from, id, "never ended");
    if (lied_to)
        return NULL;
    if (end == (DESK_ENDED | IBV_WC_SUCCESS))
        return judge_success(desk, from, id);
    return rule == WORLD_FAILS ? NULL : blame(from, id, "ended with 0x%x", end);
}

const char *world_judge(const struct desk *desk, enum world_rule rule)
{
    const char *wrong = desk->wrong ? desk->what : NULL;
    for (unsigned from = 0; from < DESK_NODES - (rule == WORLD_LIES); from++)
        for (uint32_t id = 0; id < desk->nodes[from].works && !wrong; id++)
            wrong = judge_work(desk, from, id, rule);
    return wrong;
}
