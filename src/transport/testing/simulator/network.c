#include "transport/testing/simulator/network.h"

#include <stdlib.h>
#include <string.h>

#include "transport/testing/simulator/endpoint.h"
#include "wire/datagram.h"
#include "wire/psn.h"
#include "wire/wire.h"

struct flight {
    const struct endpoint *from;
    uint32_t along; /* as a frame carries it beside the packet */
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t bytes[];
};

void network_free(struct flight *flight)
{
    free(flight);
}

/* Some of the peer's memory is read through the kernel: it may be gone, or withdrawn because the work has failed. */
static bool pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct flight *flight = payload->source;
    const struct endpoint *from = flight->from;
    struct payload plain = {.length = payload->length, .count = payload->count, .pieces = flight->pieces};
    if (world_is_dead(from) || engine_has_failed(&from->engine) || from->unfetchable ||
        chance_hits(&from->world->chance, from->world->plan.broken_pulls))
        return false;
    for (uint32_t i = 0; i < payload->count; i++)
        if (!buffers_hold(&from->buffers, &flight->pieces[i]))
            world_complain(from->world, from, "psn %u reads memory whose work has ended", flight->packet.psn);
    return payload_copy(&plain, offset, to, count);
}

/* A packet as the other side sees it: through the wire format, so that fields which are not sent don't arrive. */
static void refer(struct flight *flight, const struct packet *packet)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    unsigned read, pad;
    const struct payload *payload = &packet->payload;
    if (wire_decode(headers, wire_encode(packet, headers), &flight->packet, &read, &pad))
        world_complain(flight->from->world, flight->from, "psn %u can't be decoded", packet->psn);
    flight->packet.payload = (struct payload){
        .length = payload->length, .count = payload->count, .source = flight, .pieces = flight->pieces, .pull = pull};
    memcpy(flight->pieces, payload->pieces, payload->count * sizeof(*payload->pieces));
}

/* Flips a bit that the ICRC covers; it does not cover a routers' byte of the BTH. */
static void corrupt(struct chance *chance, uint8_t *bytes, size_t length)
{
    enum { ROUTERS_BYTE = 4 };
    uint32_t place = chance_below(chance, (uint32_t)length);
    place += place == ROUTERS_BYTE;
    bytes[place] ^= (uint8_t)(1u << chance_below(chance, 8));
}

/* Ships the packet as a datagram with its ICRC; false: it is not a packet any more, and nothing arrives. */
static bool ship(struct flight *flight, const struct packet *packet, size_t room, bool corrupted)
{
    struct world *world = flight->from->world;
    struct datagram_route route = {.source = {[10] = 0xff, [11] = 0xff, [15] = 1},
                                   .destination = {[10] = 0xff, [11] = 0xff, [15] = 2},
                                   .source_port = 0xc123,
                                   .destination_port = DATAGRAM_PORT};
    size_t length = datagram_encode(&route, packet, flight->bytes, room);
    if (corrupted)
        corrupt(&world->chance, flight->bytes, length);
    enum wire_fault fault = datagram_decode(&route, flight->bytes, length, &flight->packet, flight->pieces);
    if ((fault == WIRE_ICRC) != corrupted || (fault && !corrupted))
        world_complain(world, flight->from, "psn %u, %s, decodes with fault %d", packet->psn,
                       corrupted ? "corrupted" : "intact", fault);
    return !fault;
}

/* NULL: it was corrupted on its way. */
static struct flight *take_off(const struct endpoint *from, const struct packet *packet)
{
    bool by_reference = packet->payload.by_reference;
    size_t room = by_reference ? 0 : WIRE_HEADERS_MAX + packet->payload.length + DATAGRAM_TRAILER_MAX;
    struct flight *flight = malloc(sizeof(*flight) + room);
    bool corrupted = chance_hits(&from->world->chance, from->world->plan.corruption);
    flight->from = from;
    flight->along = from->along;
    if (by_reference)
        refer(flight, packet);
    if (by_reference ? !corrupted : ship(flight, packet, room, corrupted))
        return flight;
    from->world->statistics.lost++;
    world_note(from->world, from, "corrupts", packet->psn, 0);
    free(flight);
    return NULL;
}

static void check_packet(const struct endpoint *from, const struct packet *packet)
{
    const struct op *op = op_find(packet->opcode);
    uint32_t limit = from->segment, length = 0;
    if (packet->payload.by_reference && endpoint_is_reliable(from) && op && op->flags & (OP_SEND | OP_WRITE))
        limit = from->reference_segment;
    else if (packet->payload.by_reference)
        world_complain(from->world, from, "opcode 0x%02x goes by reference", packet->opcode);
    if (from->drained && !(op && op->flags & OP_RESPONSE))
        world_complain(from->world, from, "sends psn %u when drained", packet->psn);
    for (uint32_t i = 0; i < packet->payload.count; i++)
        length += packet->payload.pieces[i].iov_len;
    if (!op || op_service(packet->opcode) != from->service)
        world_complain(from->world, from, "sends opcode 0x%02x psn 0x%x", packet->opcode, packet->psn);
    else if (packet->payload.length > limit || length != packet->payload.length)
        world_complain(from->world, from, "psn %u carries %u bytes in pieces of %u", packet->psn,
                       packet->payload.length, length);
}

/* Requests stay within the window; one may always be out. */
static void check_window(const struct endpoint *from, const struct packet *packet)
{
    const struct op *op = op_find(packet->opcode);
    if (!endpoint_is_reliable(from) || !op || op->flags & OP_RESPONSE)
        return;
    uint32_t ahead = psn_add(packet->psn, -from->engine.rc.requester.acked_psn);
    if (ahead && ahead >= engine_settings_of(&from->engine)->window)
        world_complain(from->world, from, "psn %u lies outside the window", packet->psn);
}

static struct endpoint *find(const struct world *world, uint32_t number)
{
    for (uint32_t i = 0; i < world->count; i++)
        if (world->endpoints[i].number == number)
            return &world->endpoints[i];
    return NULL;
}

static bool is_lost(struct world *world)
{
    const struct plan *plan = &world->plan;
    if (world->now >= plan->blackout_start && world->now < plan->blackout_end)
        return true;
    return chance_hits(&world->chance, plan->loss);
}

static void launch(const struct endpoint *from, struct endpoint *to, const struct packet *packet)
{
    struct world *world = to->world;
    nanos landing = world->now + chance_between(&world->chance, world->plan.delay_least, world->plan.delay_most);
    if (world->plan.in_order && landing < to->last_landing)
        landing = to->last_landing;
    struct flight *flight = take_off(from, packet);
    if (!flight)
        return;
    to->last_landing = landing;
    events_add(&world->events,
               (struct world_event){.time = landing, .kind = EVENT_PACKET, .target = to->index, .flight = flight});
}

static void note_answer(const struct endpoint *endpoint, const struct packet *packet, const char *word)
{
    const struct op *op = op_find(packet->opcode);
    if (op && op->flags & OP_AETH)
        world_note(endpoint->world, endpoint, word, packet->psn, packet->syndrome);
}

/* A READ takes the PSNs of its response. */
static void note_reserved(const struct endpoint *from, const struct packet *packet)
{
    const struct op *op = op_find(packet->opcode);
    if (op && op->flags & OP_READ && packet->length > from->segment)
        world_note(from->world, from, "reserves", packet->psn, (packet->length - 1) / from->segment);
}

static void carry(struct endpoint *from, struct endpoint *to, const struct packet *packet)
{
    struct world *world = from->world;
    if (is_lost(world)) {
        world->statistics.lost++;
        world_note(world, from, "loses", packet->psn, 0);
        return;
    }
    launch(from, to, packet);
    if (!chance_hits(&world->chance, world->plan.duplication))
        return;
    world->statistics.duplicated++;
    launch(from, to, packet);
}

void watcher_carry(struct watcher *watcher, uint32_t index, const struct packet *packet, uint32_t along)
{
    struct endpoint *from = &watcher->world->endpoints[index];
    uint32_t before = from->along;
    from->along = along;
    carry(from, find(watcher->world, packet->destination), packet);
    from->along = before;
}

static void hand_over(struct endpoint *from, struct endpoint *to, const struct packet *packet)
{
    const struct watched watched = world_watched(from);
    struct watcher *watcher = from->world->watcher;
    if (watcher)
        watcher->operations->transmitted(watcher, &watched, packet, from->along, from->fresh);
    else
        carry(from, to, packet);
}

void network_send(struct endpoint *from, const struct packet *packet)
{
    struct world *world = from->world;
    struct endpoint *to = find(world, packet->destination);
    world->statistics.packets++;
    world_note(world, from, "sends", (uint64_t)packet->opcode << 24 | packet->psn, packet->payload.length);
    note_answer(from, packet, "answers");
    note_reserved(from, packet);
    check_packet(from, packet);
    check_window(from, packet);
    if (!to) {
        world_complain(world, from, "sends to queue pair 0x%x", packet->destination);
        return;
    }
    hand_over(from, to, packet);
}

void network_land(struct endpoint *to, struct flight *flight)
{
    const struct packet *packet = &flight->packet;
    struct watcher *watcher = to->world->watcher;
    const struct watched watched = world_watched(to);
    world_note(to->world, to, "gets", (uint64_t)packet->opcode << 24 | packet->psn, packet->payload.length);
    note_answer(to, packet, "hears");
    if (watcher)
        watcher->operations->arrived(watcher, &watched, packet);
    if (flight->along)
        engine_receive_along(&to->engine, flight->along, to->world->now);
    endpoint_receive(to, packet);
    network_free(flight);
}
