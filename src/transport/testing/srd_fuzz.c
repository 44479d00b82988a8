/* Three SRD engines, and bytes of the fuzzer that become work, receives, time, losses, failures of ends, packets of
 * strangers, and packets of a real peer with other numbers, epochs, offsets and floors. After each step the engines'
 * lists are whole: each work request that is open is in one of them, and memory is bounded. At the end all work has
 * ended once, each message arrived at most once, and where no end failed, strangers and a peer that lies changed
 * nothing of what the others do. */
#include <stdlib.h>

#include "base/container.h"
#include "transport/srd/flows.h"
#include "transport/testing/srd_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

static uint32_t take(struct input *input, unsigned bytes)
{
    uint32_t value = 0;
    for (; bytes && input->left; bytes--, input->left--)
        value = value << 8 | *input->at++;
    return value;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---- what holds after each step ---- */

static unsigned length_of(const struct srd *srd, const struct srd_works *works)
{
    const struct send_queue *queue = &srd->common.queue;
    unsigned length = works->any;
    for (uint32_t at = works->first; works->any && at != works->last; at = send_queue_at(queue, at)->srd.link) {
        require(++length <= DESK_QUEUE);
        require(!send_queue_at(queue, at)->started);
    }
    return length;
}

/* Returns how many packets of the flow wait. `out` counts them by work. */
static unsigned check_flow(const struct srd *srd, const struct srd_flow *flow, uint32_t out[DESK_QUEUE])
{
    const struct send_queue *queue = &srd->common.queue;
    unsigned flights = 0;
    require(flow->next - flow->floor <= SRD_WINDOW);
    require(flow->floor == flow->next || flow->at[flow->floor % SRD_WINDOW]);
    for (uint32_t place = 0; place < SRD_WINDOW; place++) {
        const struct srd_flight *flight = flow->at[place];
        if (!flight)
            continue;
        flights++;
        require(flight->flow == flow && flight->number % SRD_WINDOW == place);
        require(flight->number - flow->floor < flow->next - flow->floor);
        require(flight->wait == SRD_SENT || flight->wait == SRD_AGAIN);
        require(flight->work - queue->head < queue->next - queue->head);
        out[flight->work % DESK_QUEUE]++;
    }
    return flights;
}

/* No work is lost: what is open waits in a list of its flow, or for answers to its packets. */
static void check_requester(const struct srd *srd)
{
    const struct srd_requester *requester = srd->requester;
    const struct send_queue *queue = &srd->common.queue;
    uint32_t out[DESK_QUEUE] = {0}, flights = 0, listed = 0, open = 0, handed = 0;
    const struct srd_flight *flight;
    for (uint64_t bucket = 0; requester->receivers.buckets && bucket <= requester->receivers.mask; bucket++)
        for (struct hash_entry *entry = requester->receivers.buckets[bucket]; entry; entry = entry->next) {
            const struct srd_flow *flow = container_of(entry, struct srd_flow, by_receiver);
            flights += check_flow(srd, flow, out);
            listed += length_of(srd, &flow->fresh) + length_of(srd, &flow->busy);
        }
    for (uint32_t at = queue->head; at != queue->next; at++) {
        const struct send_wqe *work = send_queue_at(queue, at);
        if (work->started)
            continue;
        open++;
        require(work->srd.out == out[at % DESK_QUEUE]);
        handed += work->srd.handed == work->length && work->srd.out > 0;
    }
    require(listed + handed >= open);
    TAILQ_FOREACH (flight, &requester->free, entry)
        flights++;
    require(flights == requester->flight_count && flights <= SRD_FLIGHTS);
}

static void check_responder(const struct srd_responder *responder)
{
    unsigned greeted = 0, known = 0, spare = 0, reads = 0;
    const struct srd_source *source;
    TAILQ_FOREACH (source, &responder->strange, age_entry) {
        greeted++;
        reads += source->reads;
        require(!source->known && (source->queued || !source->due));
    }
    TAILQ_FOREACH (source, &responder->known, age_entry) {
        known++;
        reads += source->reads;
        require(source->known && (source->queued || !source->due));
    }
    TAILQ_FOREACH (source, &responder->spare, age_entry)
        spare++;
    require(greeted == responder->greeted && greeted <= SRD_GREETED);
    require(greeted + known + spare == responder->count && responder->count <= SRD_PEERS);
    require(reads == responder->read_count && reads <= SRD_READS);
}

/* A block for each flow and source, blocks of flights, tables that double, the reads, and the state itself. */
static void check(const struct desk *desk)
{
    enum { BLOCK = 64, OTHERS = 50 };
    require(!desk->wrong);
    for (unsigned i = 0; i < DESK_NODES; i++) {
        const struct srd *srd = &desk->nodes[i].engine.srd;
        if (!srd->requester)
            continue;
        check_requester(srd);
        check_responder(srd->responder);
        require(desk->nodes[i].block_count <=
                srd->requester->flow_count + srd->responder->count + srd->requester->flight_count / BLOCK + OTHERS);
    }
}

/* ---- packets of others ---- */

static const enum operation operations[] = {
    OPERATION_SEND_ONLY,    OPERATION_SEND_ONLY_IMMEDIATE, OPERATION_WRITE_ONLY,  OPERATION_WRITE_ONLY_IMMEDIATE,
    OPERATION_READ_REQUEST, OPERATION_READ_RESPONSE_ONLY,  OPERATION_ACKNOWLEDGE, OPERATION_HELLO,
    OPERATION_WELCOME,
};

static uint8_t choose_opcode(struct input *input)
{
    return op_code(SERVICE_SRD, operations[take(input, 1) % (sizeof operations / sizeof *operations)]);
}

/* In the liar's own bytes, or near the end of the memory. */
static uint64_t choose_address(struct input *input)
{
    uint32_t choice = take(input, 2);
    uint64_t end = sizeof((struct desk_node *)0)->remote;
    return choice >> 15 ? end - (choice & 0xff) : WORLD_LIAR * DESK_WORKS * DESK_SLOT + (choice & 0x3fff);
}

/* As it was, a little more or less, or anything. */
static uint32_t choose_number(struct input *input, uint32_t number)
{
    uint32_t choice = take(input, 1);
    return choice == 0xff ? take(input, 4) : number + choice - 0x80;
}

static void fill_payload(struct input *input, struct payload *payload, uint8_t *bytes, struct iovec *piece)
{
    payload->length = take(input, 1);
    for (uint32_t at = 0; at < payload->length; at++)
        bytes[at] = at < SRD_WINDOW ? (uint8_t)take(input, 1) : 0;
    *piece = (struct iovec){bytes, payload->length};
    payload->count = payload->length > 0;
    payload->pieces = piece;
}

/* Changes a packet that the liar's engine has sent. */
static void lie(struct desk *desk, struct input *input)
{
    struct desk_packet *flying = NULL;
    unsigned first = take(input, 1) % DESK_FLYING, fields = take(input, 1);
    for (unsigned i = 0; i < DESK_FLYING && !flying; i++) {
        struct desk_packet *found = &desk->flying[(first + i) % DESK_FLYING];
        flying = found->flies && found->from == WORLD_LIAR && found->to != WORLD_LIAR ? found : NULL;
    }
    if (!flying)
        return;
    struct packet *packet = &flying->packet;
    if (fields & 1)
        packet->opcode = choose_opcode(input);
    if (fields & 2)
        packet->srd.number = choose_number(input, packet->srd.number);
    if (fields & 4)
        packet->srd.floor = choose_number(input, packet->srd.floor);
    if (fields & 8)
        packet->srd.epoch = choose_number(input, packet->srd.epoch);
    if (fields & 16)
        packet->srd.cookie = choose_number(input, packet->srd.cookie);
    if (fields & 32)
        packet->length = take(input, 2);
    if (fields & 64)
        fill_payload(input, &packet->payload, flying->bytes, &flying->piece);
    packet->address = choose_address(input);
    packet->rkey = fields & 128 ? DESK_KEY + 1 : DESK_KEY;
    packet->qkey = DESK_QKEY;
}

/* A stranger knows no epoch and no cookie of the others; the fuzzer finds them by itself, as it sees comparisons. */
static bool knows_secrets(const struct desk *desk, const struct packet *packet)
{
    for (unsigned i = 0; i < DESK_NODES; i++) {
        const struct srd *srd = &desk->nodes[i].engine.srd;
        if (srd->requester && srd_flows_of_epoch(srd, packet->srd.epoch))
            return true;
    }
    return false;
}

static void be_strange(struct desk *desk, struct input *input)
{
    static const uint8_t greetings[] = {0x45, 0x60};
    uint8_t grh[40] = {greetings[take(input, 1) % 2]}, bytes[UINT8_MAX];
    struct iovec piece;
    grh[39] = grh[23] = (uint8_t)take(input, 1);
    struct packet packet = {.opcode = choose_opcode(input),
                            .pkey = 0xffff,
                            .grh = grh,
                            .source = take(input, 2),
                            .qkey = DESK_QKEY,
                            .rkey = DESK_KEY,
                            .address = choose_address(input),
                            .length = take(input, 2),
                            .srd = {take(input, 4), take(input, 2), take(input, 1), take(input, 1)}};
    struct desk_node *node = &desk->nodes[take(input, 1) % WORLD_LIAR];
    packet.destination = node->number;
    fill_payload(input, &packet.payload, bytes, &piece);
    if (!knows_secrets(desk, &packet) && !node->absent)
        engine_receive(&node->engine, &packet, desk->now);
}

/* ---- steps ---- */

static void receive(struct desk *desk, struct input *input)
{
    desk_post_receive(desk, take(input, 1) % DESK_NODES, DESK_MESSAGE);
}

static void transmit(struct desk *desk, struct input *input)
{
    desk_transmit(desk, take(input, 1) % DESK_NODES);
}

static void deliver(struct desk *desk, struct input *input)
{
    for (uint32_t count = 1 + take(input, 1) % 16; count && desk_deliver(desk); count--)
        ;
}

static void step(struct desk *desk, struct input *input, enum world_rule rule)
{
    uint32_t choice = take(input, 1);
    desk->chance.state = take(input, 2);
    switch (choice % 10) {
    case 0:
        return world_post(desk);
    case 1:
        return receive(desk, input);
    case 2:
    case 3:
        return transmit(desk, input);
    case 4:
        return deliver(desk, input);
    case 5:
        return (void)desk_wait(desk);
    case 6:
        return choice & 128 ? desk_lose(desk) : desk_double(desk);
    case 7:
        return be_strange(desk, input);
    case 8:
        return rule == WORLD_FAILS ? world_disturb(desk) : lie(desk, input);
    default:
        return desk_change_path(desk, choice % DESK_NODES, take(input, 1) % DESK_NODES,
                                (nanos)SRD_WAIT << take(input, 1) % 14);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    enum world_rule rule = take(&input, 1) % 2 ? WORLD_LIES : WORLD_FAILS;
    struct desk *desk = desk_make(1);
    desk->last_lies = rule == WORLD_LIES;
    while (input.left) {
        step(desk, &input, rule);
        check(desk);
        while (desk->flying_count > DESK_FLYING / 2 && desk_deliver(desk))
            ;
    }
    if (rule == WORLD_FAILS)
        world_heal(desk);
    world_finish(desk);
    check(desk);
    require(!world_judge(desk, rule));
    desk_free(desk);
    return 0;
}
