#include "cm/testing/world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"

enum { STEPS_MOST = 2000000 };

/* --- chance */

static uint64_t next_random(struct world *world)
{
    uint64_t x = world->random += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t world_draw(struct world *world, uint64_t limit)
{
    return limit ? next_random(world) % limit : 0;
}

bool world_hits(struct world *world, unsigned per_mille)
{
    return world_draw(world, 1000) < per_mille;
}

void world_complain(struct world *world, const char *format, ...)
{
    va_list arguments;
    if (world->complaint[0])
        return;
    va_start(arguments, format);
    vsnprintf(world->complaint, sizeof world->complaint, format, arguments);
    va_end(arguments);
}

/* --- the network */

struct flight {
    struct timer landing;
    struct world *world;
    struct host *from, *to;
    struct dispatch_datagram datagram;
};

static void note(struct world *world, const struct flight *flight, const char *what)
{
    char line[1024];
    world->trace = (world->trace ^ flight->datagram.message.local_id ^ world->now) * 0x100000001b3;
    if (world->log)
        fprintf(world->log, "%10.6f %u > %u %s %s\n", (double)world->now / 1e9, flight->from->address,
                flight->to->address, what, cm_describe(&flight->datagram.message, line, sizeof line));
}

static void launch(struct world *world, struct host *from, struct host *to, const struct dispatch_datagram *datagram);

/* An answer leads back along the way of its request; a sender that has no place there gets no answer. */
static void land(struct timer *timer, nanos now)
{
    struct flight *flight = container_of(timer, struct flight, landing);
    struct world *world = flight->world;
    struct dispatch_datagram reply, datagram = host_arrival(flight->to, flight->from, &flight->datagram);
    note(world, flight, "gets");
    world->flights--;
    if (dispatch_receive(&flight->to->manager, &datagram, &reply, now))
        launch(world, flight->to, flight->from, &reply);
    world_settle(world, flight->to);
    free(flight);
}

static void fly(struct world *world, struct host *from, struct host *to, const struct dispatch_datagram *datagram)
{
    struct flight *flight = malloc(sizeof *flight);
    *flight =
        (struct flight){.landing = {.expired = land}, .world = world, .from = from, .to = to, .datagram = *datagram};
    world->flights++;
    timer_set(&world->agenda, &flight->landing, world->now + world_draw(world, world->plan.delay_most + 1));
}

/* An attacker that sees the datagrams changes some of them; or sends them on as they are. */
static void forge(struct world *world, struct host *from, struct host *to, const struct dispatch_datagram *datagram)
{
    uint8_t bytes[MAD_BYTES];
    struct dispatch_datagram forged = *datagram;
    cm_encode(&datagram->message, bytes);
    for (uint64_t changes = world_draw(world, 4); changes; changes--)
        bytes[24 + world_draw(world, 40)] ^= (uint8_t)(1u << world_draw(world, 8));
    if (world_hits(world, 200))
        bytes[17] = (uint8_t)(CM_REQ + world_draw(world, CM_APR - CM_REQ + 1));
    if (cm_decode(bytes, sizeof bytes, &forged.message) != CM_FINE)
        return;
    world->statistics.forged++;
    fly(world, world_hits(world, 500) ? from : &world->hosts[world_draw(world, world->plan.hosts)], to, &forged);
}

static void launch(struct world *world, struct host *from, struct host *to, const struct dispatch_datagram *datagram)
{
    struct flight flight = {.from = from, .to = to, .datagram = *datagram};
    world->statistics.messages++;
    if (world_hits(world, world->plan.forgery))
        forge(world, from, to, datagram);
    if (world_hits(world, world->plan.loss)) {
        world->statistics.lost++;
        note(world, &flight, "loses");
        return;
    }
    note(world, &flight, "sends");
    fly(world, from, to, datagram);
    if (world_hits(world, world->plan.duplication))
        fly(world, from, to, datagram);
}

static struct host *host_at(struct world *world, const uint8_t gid[16])
{
    unsigned number = gid[15];
    return number && number <= world->plan.hosts ? &world->hosts[number - 1] : NULL;
}

void world_settle(struct world *world, struct host *host)
{
    struct dispatch_datagram datagram;
    struct timer *engine = &world->engine[host - world->hosts], *fetch = &world->fetch[host - world->hosts];
    while (dispatch_transmit(&host->manager, &datagram)) {
        struct host *to = host_at(world, datagram.route.gid);
        if (to)
            launch(world, host, to, &datagram);
        else
            world_complain(world, "a message leads nowhere");
    }
    nanos deadline = dispatch_deadline(&host->manager);
    if (deadline == NANOS_NEVER)
        timer_stop(&world->agenda, engine);
    else if (!engine->set || engine->at != deadline)
        timer_set(&world->agenda, engine, deadline > world->now ? deadline : world->now);
    if (host->queue.count && !fetch->set)
        timer_set(&world->agenda, fetch, world->now + world_draw(world, 20 * NANOS_MILLISECOND));
    if (host->queue.count != host->signalled)
        world_complain(world, "%u events are signalled, %u wait", host->signalled, host->queue.count);
}

/* --- time */

static struct world *the_world; /* one at a time */

static void expire_engine(struct timer *timer, nanos now)
{
    struct host *host = &the_world->hosts[timer - the_world->engine];
    dispatch_expire(&host->manager, now);
    world_settle(the_world, host);
}

static void look_for_events(struct timer *timer, nanos now)
{
    struct host *host = &the_world->hosts[timer - the_world->fetch];
    players_fetch(the_world, host);
    world_settle(the_world, host);
}

static struct world_plan draw_plan(struct world *world)
{
    struct world_plan plan = {.hosts = 2 + (unsigned)world_draw(world, WORLD_HOSTS - 1),
                              .connections = 5 + (unsigned)world_draw(world, 40),
                              .loss = (unsigned)world_draw(world, 2) * (unsigned)world_draw(world, 250),
                              .duplication = (unsigned)world_draw(world, 2) * (unsigned)world_draw(world, 300),
                              .slow = world_draw(world, 4) == 0,
                              .delay_most = (1 + world_draw(world, 1000)) * NANOS_MILLISECOND};
    if (world_draw(world, 3) == 0)
        plan.delay_most = 100 * NANOS_MICROSECOND;
    if (world_draw(world, 6) == 0)
        plan.forgery = (unsigned)world_draw(world, 500);
    if (world_draw(world, 6) == 0)
        plan.scarcity = 3 + (unsigned)world_draw(world, 50);
    return plan;
}

static void begin(struct world *world, uint64_t seed, FILE *log)
{
    memset(world, 0, sizeof *world);
    the_world = world;
    world->random = seed * 0x2545f4914f6cdd1d;
    world->log = log;
    world->now = NANOS_SECOND;
    world->plan = draw_plan(world);
    for (unsigned i = 0; i < world->plan.hosts; i++) {
        host_make(&world->hosts[i], (uint8_t)(i + 1));
        world->hosts[i].fail_after = world->hosts[i].fails_again = world->plan.scarcity;
        world->engine[i].expired = expire_engine;
        world->fetch[i].expired = look_for_events;
    }
}

static void check_host(struct world *world, struct host *host)
{
    if (host->blocks || host->port_count || host->manager.sessions || host->queue.count)
        world_complain(world, "host %u is left with %u blocks, %u ports, %u sessions, %u events", host->address,
                       host->blocks, host->port_count, host->manager.sessions, host->queue.count);
}

void world_run(struct world *world, uint64_t seed, FILE *log)
{
    begin(world, seed, log);
    players_begin(world);
    for (unsigned steps = 0; world->agenda.first && !world->complaint[0]; steps++) {
        world->now = timers_next(&world->agenda);
        struct timer *timer = world->agenda.first;
        timer_stop(&world->agenda, timer);
        timer->expired(timer, world->now);
        if (steps > STEPS_MOST)
            world_complain(world, "never comes to rest");
    }
    if (!world->complaint[0])
        players_judge(world);
    for (unsigned i = 0; i < world->plan.hosts; i++) {
        if (!world->complaint[0])
            check_host(world, &world->hosts[i]);
        host_free(&world->hosts[i]);
    }
}
