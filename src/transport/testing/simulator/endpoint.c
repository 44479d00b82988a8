#include "transport/testing/simulator/endpoint.h"

#include <string.h>

#include "transport/rc/responses.h"
#include "wire/psn.h"

bool endpoint_is_reliable(const struct endpoint *endpoint)
{
    return endpoint->service == SERVICE_RC || endpoint->service == SERVICE_XRC;
}

bool endpoint_is_flushing(const struct endpoint *endpoint)
{
    return engine_has_failed(&endpoint->engine) || engine_has_send_error(&endpoint->engine);
}

void endpoint_start(struct endpoint *endpoint, uint32_t expected_psn, uint32_t first_psn)
{
    engine_start_receiving(&endpoint->engine, expected_psn);
    engine_start_transmitting(&endpoint->engine, first_psn);
}

/* The engine that has the position, and the one that only responds again. */
static struct engine *holder_of(struct endpoint *endpoint)
{
    return endpoint->lent ? &endpoint->other : &endpoint->engine;
}

static struct engine *rest_of(struct endpoint *endpoint)
{
    return endpoint->lent ? &endpoint->engine : &endpoint->other;
}

static bool executed_by(struct engine *engine, uint32_t psn)
{
    return responses_find(&engine->rc, psn) != NULL;
}

static void share(struct endpoint *endpoint)
{
    const struct send_queue none = {.capacity = 1};
    endpoint->shared = true;
    engine_initialize(&endpoint->other, SERVICE_XRC, &endpoint->owner, &none, endpoint->other_saved);
    engine_configure(&endpoint->other, engine_settings_of(&endpoint->engine));
    engine_start_receiving(&endpoint->other, 0);
}

static void lend(struct endpoint *endpoint)
{
    struct engine_position position = engine_lend(holder_of(endpoint));
    if (!endpoint->shared)
        share(endpoint);
    engine_take_over(rest_of(endpoint), &position);
    endpoint->lent = !endpoint->lent;
    endpoint->world->statistics.lent++;
}

/* Receives a packet of XRC: two processes execute the messages, chosen by the packets' SRQs: here, by their PSNs.
 * Each of them responds again to the requests that it has executed, whether it has the position or not. */
static void receive_over_xrc(struct endpoint *endpoint, const struct packet *packet)
{
    enum { ANSWERED = OP_READ | OP_FLUSH | OP_ATOMIC | OP_ATOMIC_WRITE };
    uint32_t flags = op_find(packet->opcode)->flags;
    int32_t ahead = psn_distance(packet->psn, engine_expected_psn(holder_of(endpoint)));
    bool again = endpoint->shared && ahead < 0 && flags & ANSWERED && executed_by(rest_of(endpoint), packet->psn);
    if (!ahead && flags & OP_START && packet->psn & 4 && engine_may_lend(holder_of(endpoint)))
        lend(endpoint);
    engine_receive(again ? rest_of(endpoint) : holder_of(endpoint), packet, endpoint->world->now);
}

void endpoint_receive(struct endpoint *endpoint, const struct packet *packet)
{
    if (endpoint->service == SERVICE_XRC && !(op_find(packet->opcode)->flags & OP_RESPONSE))
        receive_over_xrc(endpoint, packet);
    else
        engine_receive(&endpoint->engine, packet, endpoint->world->now);
}

/* Responses of the two engines, old ones first; the requests are all of one. */
static bool transmit_shared(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    struct engine *both[] = {rest_of(endpoint), holder_of(endpoint)};
    for (unsigned i = 0; endpoint->shared && i < 2; i++)
        if (engine_owes_responses(both[i]))
            return engine_transmit(both[i], packet, pieces, endpoint->world->now);
    return false;
}

bool endpoint_has_output(const struct endpoint *endpoint)
{
    return engine_has_output(&endpoint->engine) || (endpoint->shared && engine_has_output(&endpoint->other));
}

/* Transmits like a host's owner, whose link carries an ACK along with a packet. */
static bool transmit_along(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    struct engine *engine = &endpoint->engine;
    if (endpoint->service != SERVICE_RC || !engine_settings_of(engine)->acks_along ||
        !engine_transmit_single(engine, packet, pieces, endpoint->world->now))
        return false;
    endpoint->along = engine_take_along(engine);
    endpoint->world->statistics.along += endpoint->along != 0;
    return true;
}

/* An engine whose peer can fetch nothing more gives other PSNs to begun work (requester_lose_references): PSNs that
 * have been sent are given to it once more, as if they had not been sent. */
static void note_fresh(struct endpoint *endpoint)
{
    uint32_t fresh = endpoint_is_reliable(endpoint) ? engine_sent_psn(&endpoint->engine) : 0;
    if (endpoint->unfetchable && psn_distance(fresh, endpoint->fresh) < 0)
        world_note(endpoint->world, endpoint, "renumbers", fresh, 0);
    endpoint->fresh = fresh;
}

bool endpoint_transmit(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    memset(packet, 0xee, sizeof(*packet)); /* an engine writes all that its operation has */
    endpoint->along = 0;
    note_fresh(endpoint);
    if (transmit_along(endpoint, packet, pieces))
        return true;
    return transmit_shared(endpoint, packet, pieces) ||
           engine_transmit(&endpoint->engine, packet, pieces, endpoint->world->now);
}

void endpoint_recover(struct endpoint *endpoint)
{
    engine_resume(&endpoint->engine);
}

void endpoint_flush(struct endpoint *endpoint)
{
    if (!engine_has_failed(&endpoint->engine))
        engine_flush(&endpoint->engine);
    if (endpoint->shared && !engine_has_failed(&endpoint->other))
        engine_flush(&endpoint->other);
}

bool endpoint_refers(const struct endpoint *endpoint)
{
    const struct send_queue *queue = &endpoint->engine.unreliable.queue;
    for (uint32_t at = queue->head; at != queue->tail; at++)
        if (send_queue_at(queue, at)->by_reference)
            return true;
    return false;
}

/* A link with references keeps the order of what it carries, and then the owner of RC may find that the peer can fetch
 * nothing more (requester_lose_references). */
static bool may_lose_references(const struct endpoint *endpoint)
{
    const struct plan *plan = &endpoint->world->plan;
    return endpoint->service == SERVICE_RC && endpoint->reference_segment && plan->in_order && !plan->duplication;
}

/* All that owners change in RTS and SQD: what a later rule, filter, rate or ibv_modify_qp decides. */
void endpoint_change_settings(struct endpoint *endpoint)
{
    struct chance *chance = &endpoint->world->chance;
    struct engine_settings settings = *engine_settings_of(&endpoint->engine);
    endpoint->unfetchable |= may_lose_references(endpoint) && chance_hits(chance, 200);
    settings.references_lost = endpoint->unfetchable;
    settings.reference_segment = endpoint->unfetchable || chance_hits(chance, 600) ? 0 : endpoint->reference_segment;
    settings.reference_from = chance_between(chance, 1, 2 * endpoint->segment);
    settings.in_pieces = chance_hits(chance, 300);
    settings.acks_along &= chance_hits(chance, 500);
    settings.ack_mask &= chance_hits(chance, 500) ? 0 : 15;
    if (endpoint->max_rd_atomic)
        settings.max_rd_atomic = chance_between(chance, 1, endpoint->max_rd_atomic);
    settings.window = 1u << chance_below(chance, 17);
    settings.retry_count += settings.retry_count < UINT8_MAX && chance_hits(chance, 300);
    settings.timeout += settings.timeout && chance_hits(chance, 100);
    engine_configure(&endpoint->engine, &settings);
    engine_expire(&endpoint->engine, endpoint->world->now, chance_hits(chance, 500) ? PEER_MOVED : PEER_SLOW,
                  REASON_NONE);
}
