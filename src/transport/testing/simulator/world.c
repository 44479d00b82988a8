#include "transport/testing/simulator/world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "transport/testing/simulator/endpoint.h"
#include "transport/testing/simulator/judge.h"
#include "transport/testing/simulator/network.h"
#include "transport/testing/simulator/owner.h"
#include "transport/testing/simulator/workload.h"

enum { EVENTS_MOST = 2000000 };

static void mix(uint64_t *trace, uint64_t value)
{
    *trace = (*trace ^ value) * 0x100000001b3;
    *trace ^= *trace >> 31;
}

void world_note(struct world *world, const struct endpoint *endpoint, const char *what, uint64_t a, uint64_t b)
{
    uint32_t number = endpoint ? endpoint->number : 0;
    mix(&world->trace, world->now);
    mix(&world->trace, (uint64_t)number << 32 | (uint8_t)what[0] << 8 | (uint8_t)what[1]);
    mix(&world->trace, a);
    mix(&world->trace, b);
    if (world->watcher && endpoint) {
        const struct watched watched = world_watched(endpoint);
        world->watcher->operations->noted(world->watcher, &watched, what, a, b);
    }
    if (world->log)
        fprintf(world->log, "%12llu qp 0x%x %s 0x%llx %llu\n", (unsigned long long)world->now, number, what,
                (unsigned long long)a, (unsigned long long)b);
}

void world_complain(struct world *world, const struct endpoint *endpoint, const char *format, ...)
{
    va_list arguments;
    if (world->complaint[0])
        return;
    int used = snprintf(world->complaint, sizeof(world->complaint), "at %llu qp 0x%x ", (unsigned long long)world->now,
                        endpoint ? endpoint->number : 0);
    va_start(arguments, format);
    vsnprintf(world->complaint + used, sizeof(world->complaint) - used, format, arguments);
    va_end(arguments);
}

void world_enter(struct endpoint *endpoint, enum ibv_qp_state from, enum ibv_qp_state to)
{
    const struct watched watched = world_watched(endpoint);
    struct watcher *watcher = endpoint->world->watcher;
    world_note(endpoint->world, endpoint, "enters", from, to);
    if (watcher)
        watcher->operations->entered(watcher, &watched, from, to);
}

static void die(struct world *world, uint32_t node)
{
    world->dead[node] = true;
    world_note(world, NULL, "dies", node, 0);
    for (uint32_t i = 0; i < world->count; i++)
        if (world->endpoints[i].node == node)
            world->endpoints[i].gone_since = world->now;
}

static void pump(struct endpoint *endpoint)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    unsigned budget = chance_between(&endpoint->world->chance, 1, endpoint->world->plan.pump_budget);
    endpoint->pump_announced = false;
    while (budget-- && !endpoint->world->complaint[0] && endpoint_transmit(endpoint, &packet, pieces))
        network_send(endpoint, &packet);
}

static void resume(struct endpoint *endpoint)
{
    if (endpoint->draining) {
        endpoint->draining = endpoint->drained = false;
        engine_drain(&endpoint->engine, false);
    }
    if (engine_has_failed(&endpoint->engine))
        return;
    endpoint->send_broken = false;
    if (engine_has_send_error(&endpoint->engine))
        world_enter(endpoint, IBV_QPS_SQE, IBV_QPS_RTS);
    endpoint_recover(endpoint);
}

static void drain(struct endpoint *endpoint)
{
    if (engine_has_failed(&endpoint->engine) || endpoint->draining)
        return;
    endpoint->draining = true;
    engine_drain(&endpoint->engine, true);
}

static void change_settings(struct endpoint *endpoint)
{
    struct statistics *statistics = &endpoint->world->statistics;
    statistics->changed += endpoint_refers(endpoint);
    endpoint_change_settings(endpoint);
    world_note(endpoint->world, endpoint, "changes", engine_settings_of(&endpoint->engine)->reference_segment, 0);
}

static void flush(struct endpoint *endpoint)
{
    if (!endpoint->failed)
        world_enter(endpoint, engine_has_send_error(&endpoint->engine) ? IBV_QPS_SQE : IBV_QPS_RTS, IBV_QPS_ERR);
    endpoint_flush(endpoint);
    endpoint->failed = true;
    endpoint->gone_since = endpoint->world->now;
    owner_flush_receives(endpoint);
}

static void announce(struct endpoint *endpoint, enum event_kind kind, nanos time)
{
    events_add(&endpoint->world->events, (struct world_event){.time = time, .kind = kind, .target = endpoint->index});
}

void world_watch(struct endpoint *endpoint, nanos deadline)
{
    struct world *world = endpoint->world;
    endpoint->watched = endpoint->timer_announced = deadline;
    if (deadline == NANOS_NEVER)
        return;
    endpoint->timer_announced += chance_below(&world->chance, world->plan.lateness);
    if (endpoint->timer_announced < world->now)
        endpoint->timer_announced = world->now;
    announce(endpoint, EVENT_TIMER, endpoint->timer_announced);
}

static void expire(struct endpoint *endpoint)
{
    struct world *world = endpoint->world;
    if (endpoint->timer_announced != world->now) /* another one was announced since */
        return;
    bool slow = chance_hits(&world->chance, 100) && !world_is_dead(endpoint->peer) &&
                !engine_has_failed(&endpoint->peer->engine);
    world_note(world, endpoint, "expires", slow, 0);
    engine_expire(&endpoint->engine, world->now, slow ? PEER_SLOW : PEER_SILENT, REASON_NONE);
    world_watch(endpoint, engine_watch(&endpoint->engine));
}

/* Checks that an engine which reports no output transmits nothing. */
static void check_silence(struct endpoint *endpoint)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    if (!chance_hits(&endpoint->world->chance, 200))
        return;
    if (endpoint_transmit(endpoint, &packet, pieces))
        world_complain(endpoint->world, endpoint, "had output and said no");
}

/* Acknowledges all late requests, some time after the first, like a round of the loop. */
static void acknowledge(struct endpoint *endpoint)
{
    endpoint->ack_announced = false;
    engine_acknowledge_late(&endpoint->engine);
}

static void see_to_ack(struct endpoint *endpoint)
{
    enum { LATE = 200 * NANOS_MICROSECOND };
    if (endpoint->service != SERVICE_RC || !engine_owes_late(&endpoint->engine) || endpoint->ack_announced)
        return;
    announce(endpoint, EVENT_ACK, endpoint->world->now + chance_below(&endpoint->world->chance, LATE));
    endpoint->ack_announced = true;
}

/* Announces events of an endpoint after a change: its owner pulls packets soon, and knows all deadlines. */
static void attend(struct endpoint *endpoint)
{
    struct world *world = endpoint->world;
    if (!endpoint_has_output(endpoint)) {
        check_silence(endpoint);
    } else if (!endpoint->pump_announced) {
        announce(endpoint, EVENT_PUMP, world->now + chance_below(&world->chance, world->plan.pump_delay));
        endpoint->pump_announced = true;
    }
    see_to_ack(endpoint);
    if (engine_deadline(&endpoint->engine) < endpoint->watched)
        world_complain(world, endpoint, "has a deadline that was not reported to its owner");
}

static void happen(struct endpoint *endpoint, const struct world_event *event)
{
    switch (event->kind) {
    case EVENT_PACKET:
        return network_land(endpoint, event->flight);
    case EVENT_POST:
        return workload_post(endpoint);
    case EVENT_POST_RECEIVE:
        return workload_post_receive(endpoint);
    case EVENT_PUMP:
        return pump(endpoint);
    case EVENT_TIMER:
        return expire(endpoint);
    case EVENT_ACK:
        return acknowledge(endpoint);
    case EVENT_DRAIN:
        return drain(endpoint);
    case EVENT_RESUME:
        return resume(endpoint);
    case EVENT_SETTINGS:
        return change_settings(endpoint);
    default:
        return flush(endpoint);
    }
}

static void dispatch(struct world *world, const struct world_event *event)
{
    struct endpoint *endpoint = &world->endpoints[event->target];
    if (event->kind == EVENT_DEATH) {
        die(world, event->target);
    } else if (world_is_dead(endpoint)) {
        network_free(event->flight);
    } else {
        happen(endpoint, event);
        attend(endpoint);
    }
}

/* Sends the packets that the watcher holds back and that are due before the next event. */
static void let_leave(struct world *world)
{
    struct watcher *watcher = world->watcher;
    nanos due;
    while (watcher && (due = watcher->operations->due(watcher)) != NANOS_NEVER && due <= events_next(&world->events)) {
        world->now = due > world->now ? due : world->now;
        watcher->operations->expired(watcher, world->now);
    }
}

static bool take_event(struct world *world, struct world_event *event)
{
    let_leave(world);
    return events_take(&world->events, event);
}

void world_run(struct world *world)
{
    struct world_event event;
    while (!world->complaint[0] && take_event(world, &event)) {
        world->now = event.time;
        if (++world->statistics.events > EVENTS_MOST)
            world_complain(world, NULL, "never comes to rest");
        dispatch(world, &event);
    }
    for (uint32_t i = 0; i < world->count && !world->complaint[0]; i++)
        if (!world_is_dead(&world->endpoints[i]))
            judge_end(&world->endpoints[i]);
    if (!world->complaint[0])
        judge_shared(world);
}
