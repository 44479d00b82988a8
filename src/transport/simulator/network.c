#include "transport/simulator/network.h"

#include <stdlib.h>
#include <string.h>

#include "transport/simulator/engine.h"
#include "wire/psn.h"
#include "wire/wire.h"

struct flight {
    const struct endpoint *from;
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t bytes[];
};

void network_free(struct flight *flight)
{
    free(flight);
}

static void copy_bytes(uint8_t *to, const struct payload *payload)
{
    for (uint32_t i = 0; i < payload->count; i++) {
        memcpy(to, payload->pieces[i].iov_base, payload->pieces[i].iov_len);
        to += payload->pieces[i].iov_len;
    }
}

/* Some of the peer's memory is read through the kernel: it may be gone, or withdrawn because the work has failed. */
static bool pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct flight *flight = payload->source;
    const struct endpoint *from = flight->from;
    struct payload plain = {.length = payload->length, .count = payload->count, .pieces = flight->pieces};
    if (world_is_dead(from) || engine_has_failed(from) ||
        chance_hits(&from->world->chance, from->world->plan.broken_pulls))
        return false;
    for (uint32_t i = 0; i < payload->count; i++)
        if (!buffers_hold(&from->buffers, &flight->pieces[i]))
            world_complain(from->world, from, "psn %u reads memory whose work has ended", flight->packet.psn);
    return payload_copy(&plain, offset, to, count);
}

/* A packet as the other side sees it: through the wire format, so that fields which are not sent don't arrive. */
static struct flight *take_off(const struct endpoint *from, const struct packet *packet)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    unsigned read, pad;
    const struct payload *payload = &packet->payload;
    struct flight *flight = malloc(sizeof(*flight) + (payload->by_reference ? 0 : payload->length));
    flight->from = from;
    if (wire_decode(headers, wire_encode(packet, headers), &flight->packet, &read, &pad))
        world_complain(from->world, from, "opcode 0x%02x psn %u can't be decoded", packet->opcode, packet->psn);
    flight->packet.payload = (struct payload){.length = payload->length, .source = flight, .pieces = flight->pieces};
    if (payload->by_reference) {
        memcpy(flight->pieces, payload->pieces, payload->count * sizeof(*payload->pieces));
        flight->packet.payload.count = payload->count;
        flight->packet.payload.pull = pull;
        return flight;
    }
    copy_bytes(flight->bytes, payload);
    flight->pieces[0] = (struct iovec){flight->bytes, payload->length};
    flight->packet.payload.count = payload->length > 0;
    return flight;
}

static void check_packet(const struct endpoint *from, const struct packet *packet)
{
    const struct op *op = op_find(packet->opcode);
    uint32_t limit = from->segment, length = 0;
    if (packet->payload.by_reference && engine_is_reliable(from) && op && op->flags & (OP_SEND | OP_WRITE))
        limit = from->rc.settings.reference_segment;
    else if (packet->payload.by_reference)
        world_complain(from->world, from, "opcode 0x%02x goes by reference", packet->opcode);
    if (from->drained && !(op && op->flags & OP_RESPONSE))
        world_complain(from->world, from, "sends psn %u when drained", packet->psn);
    for (uint32_t i = 0; i < packet->payload.count; i++)
        length += packet->payload.pieces[i].iov_len;
    if (!op || op_service(packet->opcode) != from->service || packet->psn > PSN_MASK)
        world_complain(from->world, from, "sends opcode 0x%02x psn 0x%x", packet->opcode, packet->psn);
    else if (packet->payload.length > limit || length != packet->payload.length)
        world_complain(from->world, from, "psn %u carries %u bytes in pieces of %u", packet->psn,
                       packet->payload.length, length);
}

/* Requests stay within the window; one may always be out. */
static void check_window(const struct endpoint *from, const struct packet *packet)
{
    const struct op *op = op_find(packet->opcode);
    if (!engine_is_reliable(from) || !op || op->flags & OP_RESPONSE)
        return;
    uint32_t ahead = psn_add(packet->psn, -from->rc.requester.acked_psn);
    if (ahead && ahead >= from->rc.settings.window)
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
    return chance_hits(&world->chance, plan->loss) || chance_hits(&world->chance, plan->corruption);
}

static void launch(const struct endpoint *from, struct endpoint *to, const struct packet *packet)
{
    struct world *world = to->world;
    nanos landing = world->now + chance_between(&world->chance, world->plan.delay_least, world->plan.delay_most);
    if (world->plan.in_order && landing < to->last_landing)
        landing = to->last_landing;
    to->last_landing = landing;
    events_add(
        &world->events,
        (struct event){.time = landing, .kind = EVENT_PACKET, .target = to->index, .flight = take_off(from, packet)});
}

void network_send(struct endpoint *from, const struct packet *packet)
{
    struct world *world = from->world;
    struct endpoint *to = find(world, packet->destination);
    world->statistics.packets++;
    world_note(world, from, "sends", (uint64_t)packet->opcode << 24 | packet->psn, packet->payload.length);
    check_packet(from, packet);
    check_window(from, packet);
    if (!to) {
        world_complain(world, from, "sends to queue pair 0x%x", packet->destination);
        return;
    }
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

void network_land(struct endpoint *to, struct flight *flight)
{
    const struct packet *packet = &flight->packet;
    world_note(to->world, to, "gets", (uint64_t)packet->opcode << 24 | packet->psn, packet->payload.length);
    engine_receive(to, packet);
    network_free(flight);
}
