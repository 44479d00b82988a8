#include "transport/testing/srd_desk.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "transport/scatter.h"

static struct desk_node *node_of(struct engine_owner *owner)
{
    return container_of(owner, struct desk_node, owner);
}

static unsigned index_of(const struct desk_node *node)
{
    return (unsigned)(node - node->desk->nodes);
}

static void blame(struct desk *desk, const char *what)
{
    desk->what = desk->wrong++ ? desk->what : what;
}

uint8_t desk_byte(unsigned node, uint32_t work, uint32_t at)
{
    return (uint8_t)(node * 83 + work * 7 + at * 13 + (work >> 5));
}

bool desk_has(const uint8_t *memory, unsigned node, uint32_t work, uint32_t length)
{
    for (uint32_t at = 0; at < length; at++)
        if (memory[at] != desk_byte(node, work, at))
            return false;
    return true;
}

/* ---- the network ---- */

static void let_fly(struct desk *desk, unsigned from, unsigned to, const struct packet *packet)
{
    if (desk->flying_count == DESK_FLYING)
        return; /* the packet is lost */
    struct desk_packet *place = &desk->flying[desk->places[desk->flying_count++]];
    *place = (struct desk_packet){.packet = *packet, .from = from, .to = to, .flies = true};
    place->packet.grh = NULL;
    place->piece = (struct iovec){place->bytes, packet->payload.length};
    if (packet->payload.length > sizeof place->bytes ||
        (packet->payload.length && !payload_copy(&packet->payload, 0, &place->piece, 1)))
        blame(desk, "a payload is too long");
    place->packet.payload = (struct payload){
        .length = packet->payload.length, .count = packet->payload.length > 0, .pieces = &place->piece};
}

static unsigned node_with(const struct desk *desk, uint32_t number)
{
    unsigned node = 0;
    while (node < DESK_NODES && desk->nodes[node].number != number)
        node++;
    return node;
}

void desk_change_path(struct desk *desk, unsigned from, unsigned to, nanos late)
{
    for (unsigned i = 0; i < DESK_FLYING; i++)
        if (desk->flying[i].from == from && desk->flying[i].to == to)
            desk->flying[i].late = desk->now + late;
    desk->latest = desk->now + late > desk->latest ? desk->now + late : desk->latest;
}

/* When the first late packet arrives. */
static nanos next_arrival(const struct desk *desk)
{
    nanos next = NANOS_NEVER;
    for (unsigned i = 0; i < desk->flying_count && desk->latest > desk->now; i++) {
        const struct desk_packet *flying = &desk->flying[desk->places[i]];
        if (flying->late > desk->now && flying->late < next)
            next = flying->late;
    }
    return next;
}

/* One that arrives now. */
static struct desk_packet *choose_flying(struct desk *desk)
{
    unsigned first = (unsigned)chance_below(&desk->chance, desk->flying_count);
    for (unsigned i = 0; i < desk->flying_count; i++) {
        struct desk_packet *flying = &desk->flying[desk->places[(first + i) % desk->flying_count]];
        if (flying->late <= desk->now)
            return flying;
    }
    return NULL;
}

static void change_places(struct desk *desk, unsigned one, unsigned other)
{
    uint16_t first = desk->places[one], second = desk->places[other];
    desk->places[one] = second;
    desk->places[other] = first;
    desk->ranks[first] = (uint16_t)other;
    desk->ranks[second] = (uint16_t)one;
}

void desk_land(struct desk *desk, struct desk_packet *flying)
{
    flying->flies = false;
    change_places(desk, desk->ranks[flying - desk->flying], --desk->flying_count);
}

bool desk_deliver(struct desk *desk)
{
    struct desk_packet *flying = choose_flying(desk), arrived;
    struct packet response;
    if (!flying)
        return false;
    arrived = *flying;
    arrived.piece.iov_base = arrived.bytes;
    arrived.packet.payload.pieces = &arrived.piece;
    desk_land(desk, flying);
    struct desk_node *node = &desk->nodes[arrived.to];
    if (node->deaf)
        return true;
    if (!node->absent)
        engine_receive(&node->engine, &arrived.packet, desk->now);
    else if (srd_refusal(&arrived.packet, &response))
        let_fly(desk, arrived.to, arrived.from, &response);
    return true;
}

void desk_lose(struct desk *desk)
{
    struct desk_packet *flying = choose_flying(desk);
    if (flying)
        desk_land(desk, flying);
}

void desk_double(struct desk *desk)
{
    const struct desk_packet *flying = choose_flying(desk);
    if (flying)
        let_fly(desk, flying->from, flying->to, &flying->packet);
}

/* ---- what the engine asks ---- */

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    struct desk_node *node = node_of(owner);
    if (work->id >= node->works || node->ends[work->id])
        return blame(node->desk, "work ended twice");
    node->ends[work->id] = (uint8_t)(DESK_ENDED | status);
    node->reasons[work->id] = (uint16_t)reason;
    node->order[node->ended++] = (uint32_t)work->id;
}

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct desk_node *node = node_of(owner);
    (void)packet;
    if (node->taken == node->posted)
        return NULL;
    const struct recv_wqe *receive = &node->receives[node->taken % DESK_RECEIVES];
    if (scatter_room(receive) < least)
        return &receive_too_short;
    node->taken++;
    return receive;
}

static void on_return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    (void)receive;
    node_of(owner)->taken--;
}

/* A message carries the number of its work in its immediate, and in each byte. */
static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct desk_node *node = node_of(owner);
    unsigned from = node_with(node->desk, arrival->source);
    uint32_t work = arrival->immediate_or_key;
    node->arrived++;
    bool lies = node->desk->last_lies && (from == DESK_NODES - 1 || index_of(node) == DESK_NODES - 1);
    if (arrival->status != IBV_WC_SUCCESS || lies)
        return;
    if (from == DESK_NODES || work >= node->desk->nodes[from].works)
        return blame(node->desk, "a message nobody sent");
    bool written = arrival->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    const uint8_t *memory =
        written ? node->remote + (from * DESK_WORKS + work) * DESK_SLOT : node->received[receive->id];
    if (arrival->length != node->desk->nodes[from].lengths[work])
        blame(node->desk, "a message arrived with another length");
    if (!desk_has(memory, from, work, arrival->length))
        blame(node->desk, "a message arrived with other bytes");
    if (node->arrivals[from][work]++)
        blame(node->desk, "a message arrived twice");
}

static enum reason on_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access, struct iovec *out)
{
    (void)owner, (void)access;
    if (sge->lkey != DESK_KEY)
        return REASON_LOCAL_KEY_UNKNOWN;
    *out = (struct iovec){(void *)(uintptr_t)sge->addr, sge->length};
    return REASON_NONE;
}

static enum reason on_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                    unsigned access, struct iovec *out)
{
    struct desk_node *node = node_of(owner);
    (void)access;
    if (rkey != DESK_KEY || node->withdrawn)
        return REASON_REMOTE_KEY_UNKNOWN;
    if (address > sizeof node->remote || length > sizeof node->remote - address)
        return REASON_REMOTE_RANGE;
    *out = (struct iovec){node->remote + address, length};
    return REASON_NONE;
}

static void on_event(struct engine_owner *owner, enum ibv_event_type event)
{
    node_of(owner)->drained += event == IBV_EVENT_SQ_DRAINED;
}

static void on_failed(struct engine_owner *owner, bool sqe)
{
    (void)sqe;
    blame(node_of(owner)->desk, "an engine failed");
}

static void on_watch(struct engine_owner *owner, nanos deadline)
{
    node_of(owner)->told = deadline;
}

static void on_note(struct engine_owner *owner, enum event event, uint64_t a, uint64_t b)
{
    struct desk_node *node = node_of(owner);
    (void)a, (void)b;
    node->busy_sent += event == EVENT_RNR_SENT;
    node->busy_received += event == EVENT_RNR_RECEIVED;
    node->timeouts += event == EVENT_ACK_TIMEOUT;
    node->retransmits += event == EVENT_RETRANSMITTED;
}

static void *on_room(struct engine_owner *owner, size_t size)
{
    struct desk_node *node = node_of(owner);
    bool lacks = node->desk->short_of_memory || node->block_count >= node->blocks_most;
    if ((lacks && size != engine_first_room()) || node->block_count == DESK_BLOCKS)
        return NULL;
    return node->blocks[node->block_count++] = calloc(1, size);
}

static void on_reply(struct engine_owner *owner, const struct packet *packet, const struct packet *response)
{
    struct desk_node *node = node_of(owner);
    unsigned to = node_with(node->desk, packet->source);
    if (to < DESK_NODES)
        let_fly(node->desk, index_of(node), to, response);
}

static bool on_knows(struct engine_owner *owner, const struct packet *packet)
{
    (void)packet;
    return !node_of(owner)->knows_none;
}

static bool on_is_slow(struct engine_owner *owner, const struct send_wqe *work)
{
    (void)owner;
    return ((const struct desk_node *)work->address)->slow;
}

static unsigned on_holds_back(struct engine_owner *owner)
{
    struct desk_node *node = node_of(owner);
    struct chance *chance = &node->desk->chance;
    return node->late && chance_hits(chance, node->late) ? 1 + (unsigned)chance_below(chance, SRD_LATE_MOST) : 0;
}

static bool on_is_refused(struct engine_owner *owner, const struct send_wqe *work, nanos since)
{
    nanos at = ((const struct desk_node *)work->address)->refused;
    (void)owner;
    return at && at >= since;
}

static enum ibv_wc_status on_local_operation(struct engine_owner *owner, const struct send_wqe *work,
                                             enum reason *reason)
{
    (void)owner, (void)work;
    *reason = REASON_SCRIPTED;
    return IBV_WC_GENERAL_ERR;
}

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    (void)packet;
    node_of(owner)->dropped++;
    node_of(owner)->last_drop = reason;
}

static const struct owner_operations operations = {
    .sent = on_sent,
    .take_receive = on_take_receive,
    .return_receive = on_return_receive,
    .received = on_received,
    .local_memory = on_memory,
    .receive_memory = on_memory,
    .remote_memory = on_remote_memory,
    .failed = on_failed,
    .event = on_event,
    .watch = on_watch,
    .note = on_note,
    .room = on_room,
    .reply = on_reply,
    .knows = on_knows,
    .is_slow = on_is_slow,
    .holds_back = on_holds_back,
    .is_refused = on_is_refused,
    .local_operation = on_local_operation,
    .dropped = on_dropped,
};

/* ---- the desk ---- */

static void start_node(struct desk_node *node)
{
    engine_configure(&node->engine, &(struct engine_settings){.service = SERVICE_SRD,
                                                              .pkey = 0xffff,
                                                              .segment = DESK_SEGMENT,
                                                              .rnr_retry = 7,
                                                              .max_message = DESK_MESSAGE,
                                                              .max_rdma = DESK_SLOT,
                                                              .number = node->number,
                                                              .qkey = DESK_QKEY,
                                                              .seed = chance_next(&node->desk->seeds) | 1});
    engine_start_receiving(&node->engine, 0);
    engine_start_transmitting(&node->engine, 0);
}

static void make_engine(struct desk_node *node)
{
    struct send_queue queue = {
        .memory = node->queue, .stride = sizeof node->queue / DESK_QUEUE, .capacity = DESK_QUEUE};
    memset(&node->engine, 0, sizeof node->engine);
    memset(node->queue, 0, sizeof node->queue);
    engine_initialize(&node->engine, SERVICE_SRD, &node->owner, &queue, NULL);
    node->told = NANOS_NEVER;
    start_node(node);
}

static void make_node(struct desk *desk, unsigned index)
{
    struct desk_node *node = &desk->nodes[index];
    *node = (struct desk_node){.desk = desk, .number = 0x10 + index, .route = 1 + index, .blocks_most = DESK_BLOCKS};
    node->owner.operations = &operations;
    make_engine(node);
}

static void forget_works(struct desk_node *node)
{
    for (uint32_t work = 0; work < node->works; work++)
        if (!node->ends[work]) {
            node->ends[work] = DESK_ENDED | DESK_FORGOTTEN;
            node->order[node->ended++] = work;
        }
}

void desk_reset(struct desk *desk, unsigned index)
{
    struct desk_node *node = &desk->nodes[index];
    engine_reset(&node->engine);
    node->told = NANOS_NEVER;
    forget_works(node);
    start_node(node);
}

static void free_blocks(struct desk_node *node)
{
    while (node->block_count)
        free(node->blocks[--node->block_count]);
}

void desk_kill(struct desk *desk, unsigned index)
{
    struct desk_node *node = &desk->nodes[index];
    forget_works(node);
    free_blocks(node);
    node->posted = node->taken;
    make_engine(node);
}

struct desk *desk_make(uint64_t seed)
{
    struct desk *desk = calloc(1, sizeof *desk);
    desk->chance.state = seed;
    desk->seeds.state = ~seed;
    desk->now = NANOS_SECOND;
    for (uint16_t i = 0; i < DESK_FLYING; i++)
        desk->places[i] = desk->ranks[i] = i;
    for (unsigned i = 0; i < DESK_NODES; i++)
        make_node(desk, i);
    return desk;
}

void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < DESK_NODES; i++)
        free_blocks(&desk->nodes[i]);
    free(desk);
}

void desk_retry(struct desk_node *node, uint8_t rnr_retry)
{
    struct engine_settings settings = *engine_settings_of(&node->engine);
    settings.rnr_retry = rnr_retry;
    engine_configure(&node->engine, &settings);
}

uint32_t desk_post(struct desk *desk, unsigned from, unsigned to, enum ibv_wr_opcode opcode, uint32_t length)
{
    struct desk_node *node = &desk->nodes[from], *receiver = &desk->nodes[to];
    struct send_wqe *work = node->works < DESK_WORKS ? send_queue_reserve(engine_queue(&node->engine)) : NULL;
    bool reads = opcode == IBV_WR_RDMA_READ;
    if (!work)
        return UINT32_MAX;
    uint32_t id = node->works++;
    uint8_t *local = node->local + id * DESK_SLOT, *remote = receiver->remote + (from * DESK_WORKS + id) * DESK_SLOT;
    for (uint32_t at = 0; at < DESK_SLOT; at++)
        (reads ? remote : local)[at] = desk_byte(from, id, at);
    memset(work, 0, sizeof *work);
    work->id = id;
    work->opcode = (uint8_t)opcode;
    work->length = node->lengths[id] = length;
    work->immediate = id;
    work->rkey = DESK_KEY;
    work->remote_address = (from * DESK_WORKS + id) * DESK_SLOT;
    work->address = receiver;
    work->swap = receiver->route;
    work->remote_qp = receiver->number;
    work->remote_qkey = DESK_QKEY;
    work->sge_count = 1;
    work->sge[0] = (struct ibv_sge){(uintptr_t)local, length, DESK_KEY};
    send_queue_commit(engine_queue(&node->engine));
    engine_posted(&node->engine);
    return id;
}

struct send_wqe *desk_work(struct desk *desk, unsigned index)
{
    struct send_queue *queue = engine_queue(&desk->nodes[index].engine);
    return send_queue_at(queue, queue->tail - 1);
}

bool desk_post_receive(struct desk *desk, unsigned index, uint32_t length)
{
    struct desk_node *node = &desk->nodes[index];
    uint32_t place = node->posted % DESK_RECEIVES;
    if (node->posted - node->taken == DESK_RECEIVES)
        return false;
    node->receive_sges[place] = (struct ibv_sge){(uintptr_t)node->received[place], length, DESK_KEY};
    node->receives[place] = (struct recv_wqe){.id = place, .sge_count = 1, .sge = &node->receive_sges[place]};
    node->posted++;
    return true;
}

void desk_transmit(struct desk *desk, unsigned index)
{
    struct desk_node *node = &desk->nodes[index];
    struct engine_target target;
    struct packet out;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    bool held = false;
    engine_retry(&node->engine);
    while (engine_next_message(&node->engine, &target)) {
        unsigned to = node_with(desk, target.number);
        bool closed = to < DESK_NODES && desk->nodes[to].closed;
        held |= closed;
        if (to == DESK_NODES)
            engine_nobody(&node->engine);
        else if (closed)
            engine_hold(&node->engine, desk->now);
        else if (engine_transmit(&node->engine, &out, pieces, desk->now))
            let_fly(desk, index, to, &out);
    }
    if (engine_has_output(&node->engine) != held)
        blame(desk, held ? "what is held is no output" : "output is left");
}

bool desk_wait(struct desk *desk)
{
    nanos next = next_arrival(desk);
    for (unsigned i = 0; i < DESK_NODES; i++) {
        nanos deadline = engine_deadline(&desk->nodes[i].engine);
        next = deadline < next ? deadline : next;
        if (deadline < desk->nodes[i].told)
            blame(desk, "a deadline the owner does not know");
    }
    if (next == NANOS_NEVER)
        return false;
    desk->now = next > desk->now ? next : desk->now;
    for (unsigned i = 0; i < DESK_NODES; i++)
        if (desk->nodes[i].told <= desk->now) {
            engine_expire(&desk->nodes[i].engine, desk->now, PEER_SILENT, REASON_NONE);
            desk->nodes[i].told = engine_watch(&desk->nodes[i].engine);
        }
    return true;
}

void desk_settle(struct desk *desk)
{
    enum { STEPS = 200000 };
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned i = 0; i < DESK_NODES; i++)
            desk_transmit(desk, i);
        if (!desk_deliver(desk) && !desk_wait(desk))
            return;
    }
    blame(desk, "it does not settle");
}
