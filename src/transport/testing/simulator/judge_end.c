#include <stdlib.h>
#include <string.h>

#include "transport/testing/simulator/endpoint.h"
#include "transport/testing/simulator/judge.h"
#include "transport/testing/simulator/owner.h"

/* Bytes and counters that work which failed may or may not have changed. */
struct doubt {
    bool bytes[TARGET_BYTES];
    bool counters[COUNTERS];
};

static void doubt_work(struct doubt *doubt, const struct entry *entry)
{
    if (!entry->uncertain)
        return;
    if (entry->rkey == KEY_TARGET && entry->opcode != IBV_WR_RDMA_READ)
        memset(doubt->bytes + entry->remote, true, entry->length);
    else if (entry->rkey == KEY_COUNTERS)
        doubt->counters[entry->remote / sizeof(uint64_t) % COUNTERS] = true;
}

/* RC: the peer's WRITEs and atomics left here what was posted there, each done once. */
static void judge_reliable_memory(struct endpoint *endpoint)
{
    const struct endpoint *sender = endpoint->peer;
    struct doubt *doubt = calloc(1, sizeof(*doubt));
    for (uint32_t i = 0; i < sender->posted; i++)
        doubt_work(doubt, &sender->works[i]);
    for (uint32_t i = 0; i < TARGET_BYTES; i++)
        if (!doubt->bytes[i] && endpoint->target[i] != sender->model[i]) {
            world_complain(endpoint->world, endpoint, "target byte %u is wrong in the end", i);
            break;
        }
    for (uint32_t i = 0; i < COUNTERS; i++)
        if (!doubt->counters[i] && endpoint->counters[i] != sender->counter_model[i])
            world_complain(endpoint->world, endpoint, "counter %u is wrong in the end", i);
    free(doubt);
}

/* UC: each byte has the value that every WRITE writes there, or is untouched. */
static void judge_unreliable_memory(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < TARGET_BYTES; i++)
        if (endpoint->target[i] && endpoint->target[i] != judge_target_byte(i)) {
            world_complain(endpoint->world, endpoint, "target byte %u is wrong in the end", i);
            return;
        }
}

static bool is_calm(const struct endpoint *endpoint)
{
    const struct plan *plan = &endpoint->world->plan;
    return !plan_is_faulty(plan) && !plan->late_receives && !plan->errors && plan->dying == PLAN_NOBODY;
}

/* Judges losses: without faults even the unreliable services lose nothing. */
static void judge_losses(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->posted; i++) {
        const struct entry *entry = &endpoint->works[i];
        if (entry->consumes && !entry->delivered && (entry->length || endpoint->service == SERVICE_RC))
            world_complain(endpoint->world, endpoint, "message %u was not delivered", i);
    }
}

static void judge_rest(struct endpoint *endpoint)
{
    const struct send_queue *queue = engine_queue(&endpoint->engine);
    struct world *world = endpoint->world;
    if (endpoint->ended != endpoint->to_post || queue->head != queue->tail)
        world_complain(world, endpoint, "%u works ended, %u posted, %u planned", endpoint->ended, endpoint->posted,
                       endpoint->to_post);
    else if (endpoint_has_output(endpoint) || engine_deadline(&endpoint->engine) != NANOS_NEVER)
        world_complain(world, endpoint, "has done everything and is not idle");
    else if (endpoint->draining && !endpoint->failed)
        world_complain(world, endpoint, "was never drained");
    else if (endpoint->failed != engine_has_failed(&endpoint->engine))
        world_complain(world, endpoint, "failed, and its owner does not know");
    else if (is_calm(endpoint) && endpoint_is_reliable(endpoint) &&
             endpoint->receives_taken != endpoint->receives_ended)
        world_complain(world, endpoint, "has an open receive in the end");
}

void judge_end(struct endpoint *endpoint)
{
    judge_rest(endpoint);
    if (is_calm(endpoint))
        judge_losses(endpoint);
    if (endpoint_is_reliable(endpoint) && !world_is_dead(endpoint->peer))
        judge_reliable_memory(endpoint);
    else if (!endpoint_is_reliable(endpoint))
        judge_unreliable_memory(endpoint);
    endpoint_flush(endpoint);
    owner_flush_receives(endpoint);
    if (endpoint->receives_ended != endpoint->receives_posted)
        world_complain(endpoint->world, endpoint, "%u receives ended, %u posted", endpoint->receives_ended,
                       endpoint->receives_posted);
}

/* Work that dead endpoints had begun may have been done. */
static void doubt_dead(struct world *world)
{
    for (uint32_t i = 0; i < world->count; i++) {
        const struct endpoint *endpoint = &world->endpoints[i];
        for (uint32_t j = endpoint->ended; j < endpoint->posted && endpoint->peer; j++)
            world->shared_perhaps[endpoint->peer->node] += endpoint->works[j].add;
    }
}

void judge_shared(struct world *world)
{
    doubt_dead(world);
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        uint64_t sum = world->shared[i], sure = world->shared_sure[i];
        if (sum < sure || sum > sure + world->shared_perhaps[i])
            world_complain(world, NULL, "node %u: the shared counter is %llu, and %llu was added", i,
                           (unsigned long long)sum, (unsigned long long)sure);
    }
}
