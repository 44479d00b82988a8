/* Makes a world that is ready to run from a plan, and frees it. */
#include <stdlib.h>
#include <string.h>

#include "transport/testing/simulator/endpoint.h"
#include "transport/testing/simulator/network.h"
#include "transport/testing/simulator/owner.h"
#include "transport/testing/simulator/world.h"
#include "wire/psn.h"

enum { PKEY = 0xffff, QKEY = 0x1234, FIRST_NUMBER = 0x100, MESSAGE_MOST = 1 << 16 };

static void announce(struct world *world, enum event_kind kind, uint32_t target, nanos time)
{
    events_add(&world->events, (struct world_event){.time = time, .kind = kind, .target = target});
}

/* More than verbs allow where packets are lost, so that giving up on a live peer is a fault; yet few enough that
 * retries which are not counted anew after each progress run out. */
static uint8_t choose_retries(struct world *world)
{
    enum { FOR_LOSSES = 40, FOR_BLACKOUTS = 250 };
    if (!plan_is_faulty(&world->plan))
        return chance_between(&world->chance, 0, 7);
    return world->plan.blackout_end ? FOR_BLACKOUTS : FOR_LOSSES;
}

/* Timers are about as short as a round trip if packets are lost. Without losses they may be infinite. */
static uint8_t choose_timeout(struct world *world)
{
    const struct plan *plan = &world->plan;
    if (plan_is_faulty(plan))
        return chance_between(&world->chance, 5, 10);
    bool patient = plan->dying == PLAN_NOBODY && !plan->errors && chance_hits(&world->chance, 200);
    return patient ? 0 : chance_between(&world->chance, 14, 18);
}

/* Chooses when ACKs are asked for, if packets mostly arrive in order. */
static void choose_asking(struct chance *chance, struct engine_settings *settings)
{
    static const uint32_t masks[] = {0, 1, 3, 15};
    settings->ack_mask = masks[chance_below(chance, 4)];
    settings->acks_along = chance_hits(chance, 700);
}

static void choose_settings(struct world *world, struct engine_settings *settings, enum service service)
{
    struct chance *chance = &world->chance;
    static const uint32_t windows[] = {1, 2, 4, 16, 64, 1 << 16};
    *settings = (struct engine_settings){
        .service = service,
        .pkey = PKEY,
        .segment = 256u << chance_below(chance, 5),
        .window = windows[chance_below(chance, sizeof(windows) / sizeof(*windows))],
        .timeout = choose_timeout(world),
        .retry_count = choose_retries(world),
        .rnr_retry = chance_hits(chance, 200) ? chance_between(chance, 0, 6) : 7,
        .min_rnr_timer = chance_between(chance, 1, 16),
        .max_rd_atomic = chance_between(chance, 1, chance_hits(chance, 200) ? SAVED_MAX : 8),
        .access =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | NEWER_ACCESS_FLUSH_GLOBAL,
        .max_message = MESSAGE_MOST,
    };
    if (chance_hits(chance, 500))
        settings->first_window = chance_between(chance, 1, 32);
    else if (service == SERVICE_RC)
        choose_asking(chance, settings);
    if (!settings->timeout) /* for ever, too, or the peer waits for one that gave up */
        settings->rnr_retry = 7;
    settings->max_dest_rd_atomic = chance_between(chance, settings->max_rd_atomic, SAVED_MAX);
    settings->exact = true;
    bool watched = world->watcher && world->watcher->disturbs; /* a reference can't be copied to wait */
    if (watched || !chance_hits(chance, 400))
        return;
    settings->exact = false;
    settings->reference_segment = settings->segment << chance_between(chance, 0, 3);
    settings->reference_from = chance_between(chance, 1, 2 * settings->segment);
}

static void make_queue(struct endpoint *endpoint, struct send_queue *queue)
{
    struct chance *chance = &endpoint->world->chance;
    queue->stride = sizeof(struct send_wqe) + INLINE_MAX;
    queue->capacity = 1u << chance_between(chance, 0, 6);
    endpoint->queue_memory = calloc(queue->capacity, queue->stride);
    queue->memory = (uint8_t *)endpoint->queue_memory;
}

static void make_engine(struct endpoint *endpoint, const struct engine_settings *settings, uint32_t destination)
{
    struct send_queue queue = {0};
    make_queue(endpoint, &queue);
    engine_initialize(&endpoint->engine, endpoint->service, &endpoint->owner, &queue, endpoint->saved);
    struct engine_settings own = *settings;
    own.destination = destination;
    own.number = endpoint->number;
    endpoint->reference_segment = own.reference_segment;
    endpoint->max_rd_atomic = own.max_rd_atomic;
    engine_configure(&endpoint->engine, &own);
}

static void choose_fault(struct endpoint *endpoint)
{
    struct chance *chance = &endpoint->world->chance;
    if (!chance_hits(chance, endpoint->world->plan.errors))
        return;
    endpoint->fault = chance_between(chance, FAULT_NONE, FAULTS - 1);
    endpoint->fault_at = chance_below(chance, endpoint->to_post);
    if (endpoint->fault == FAULT_MISALIGNED && !endpoint_is_reliable(endpoint))
        endpoint->fault = FAULT_NONE;
    if (chance_hits(chance, 100))
        announce(endpoint->world, EVENT_FLUSH, endpoint->index, chance_below(chance, NANOS_MILLISECOND));
}

/* A fault that needs a longer message than a datagram can be is another one. */
static void make_program(struct endpoint *endpoint, const struct engine_settings *settings)
{
    struct world *world = endpoint->world;
    struct chance *chance = &world->chance;
    endpoint->segment = settings->segment;
    endpoint->longest = settings->segment;
    if (endpoint->service != SERVICE_UD)
        endpoint->longest *= chance_between(chance, 1, 12);
    if (endpoint->longest > TARGET_BYTES)
        endpoint->longest = TARGET_BYTES;
    endpoint->to_post = chance_between(chance, 1, world->plan.works);
    choose_fault(endpoint);
    if (endpoint->service == SERVICE_UD && endpoint->fault == FAULT_LONGER_THAN_RECEIVE)
        endpoint->fault = FAULT_LONGER_THAN_ALLOWED;
    for (uint32_t i = chance_below(chance, 4); i; i--)
        announce(world, EVENT_POST_RECEIVE, endpoint->index, 0);
    announce(world, EVENT_POST, endpoint->index, chance_below(chance, 10 * NANOS_MICROSECOND));
    for (unsigned i = chance_hits(chance, 150) ? 3 : 0; i; i--)
        announce(world, EVENT_DRAIN, endpoint->index, chance_below(chance, NANOS_MILLISECOND));
    for (unsigned i = chance_below(chance, world->plan.changes + 1); i; i--)
        announce(world, EVENT_SETTINGS, endpoint->index, chance_below(chance, NANOS_MILLISECOND));
}

static struct endpoint *make_endpoint(struct world *world, enum service service, uint32_t index)
{
    struct endpoint *endpoint = &world->endpoints[index];
    endpoint->owner.operations = &host_of_simulator;
    endpoint->world = world;
    endpoint->service = service;
    endpoint->index = index;
    endpoint->number = FIRST_NUMBER + index;
    endpoint->node = chance_below(&world->chance, world->plan.nodes);
    endpoint->timer_announced = endpoint->watched = NANOS_NEVER;
    return endpoint;
}

/* Most begin just before the end of the circle. */
static uint32_t choose_psn(struct chance *chance)
{
    return chance_hits(chance, 700) ? PSN_MASK - chance_below(chance, 300) : chance_next(chance) & PSN_MASK;
}

static void make_pair(struct world *world, uint32_t index)
{
    struct chance *chance = &world->chance;
    enum service service = chance_hits(chance, 250) ? SERVICE_UC : chance_hits(chance, 150) ? SERVICE_XRC : SERVICE_RC;
    struct endpoint *a = make_endpoint(world, service, index), *b = make_endpoint(world, service, index + 1);
    struct engine_settings settings;
    uint32_t ours = choose_psn(chance), theirs = choose_psn(chance);
    choose_settings(world, &settings, service);
    a->peer = b;
    b->peer = a;
    make_engine(a, &settings, b->number);
    make_engine(b, &settings, a->number);
    make_program(a, &settings);
    make_program(b, &settings);
    b->longest = a->longest;
    endpoint_start(a, theirs, ours);
    endpoint_start(b, ours, theirs);
}

static void make_datagram(struct world *world, uint32_t index)
{
    struct engine_settings settings = {.pkey = PKEY, .qkey = QKEY, .segment = 1024, .max_message = 1024};
    struct endpoint *endpoint = make_endpoint(world, SERVICE_UD, index);
    make_engine(endpoint, &settings, 0);
    make_program(endpoint, &settings);
    endpoint_start(endpoint, 0, choose_psn(&world->chance));
}

/* The oracle expects what the packets may meet on their way. */
static void expect_disturbance(struct plan *plan)
{
    plan->in_order = false;
    if (!plan->duplication)
        plan->duplication = 1;
}

void world_make(struct world *world, uint64_t seed, struct watcher *watcher)
{
    memset(world, 0, sizeof(*world));
    world->chance.state = seed;
    world->watcher = watcher;
    plan_make(&world->plan, &world->chance);
    if (watcher && watcher->disturbs)
        expect_disturbance(&world->plan);
    world->count = 2 * world->plan.pairs + world->plan.datagrams;
    world->endpoints = calloc(world->count, sizeof(*world->endpoints));
    for (uint32_t i = 0; i < world->plan.pairs; i++)
        make_pair(world, 2 * i);
    for (uint32_t i = 0; i < world->plan.datagrams; i++)
        make_datagram(world, 2 * world->plan.pairs + i);
    if (world->plan.dying != PLAN_NOBODY)
        announce(world, EVENT_DEATH, world->plan.dying, world->plan.death);
}

static void free_endpoint(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->posted; i++)
        free(endpoint->works[i].content);
    for (uint32_t i = 0; i < endpoint->receives_posted; i++)
        free(endpoint->receives[i]);
    buffers_free(&endpoint->buffers);
    free(endpoint->queue_memory);
}

void world_free(struct world *world)
{
    struct world_event event;
    while (events_take(&world->events, &event))
        network_free(event.flight);
    for (uint32_t i = 0; i < world->count; i++)
        free_endpoint(&world->endpoints[i]);
    events_free(&world->events);
    free(world->endpoints);
}
