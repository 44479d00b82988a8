/* The programs' calls on their identifiers, and the events that they may expect for them. */
#include <string.h>

#include "base/container.h"
#include "cm/address/address_query.h"
#include "cm/address/route_query.h"
#include "cm/connect.h"
#include "cm/queue_pair/attributes.h"
#include "cm/testing/world.h"

enum { BASE_PORT = 7000, QPN_BASE = 0x1000, WORDS = 2 };

static const nanos longest_life = 500 * NANOS_SECOND; /* how long a player lives at most */
static const struct cm_ece no_ece;

/* --- turns */

static void take_turn(struct timer *timer, nanos now)
{
    struct player *player = container_of(timer, struct player, turn);
    if (player->identifier)
        player->next(player);
    world_settle(player->world, player->host);
}

static void plan_turn(struct player *player, nanos most, void (*next)(struct player *))
{
    struct world *world = player->world;
    nanos think = world->plan.slow && world_hits(world, 100) ? 30 * NANOS_SECOND : most;
    player->next = next;
    timer_set(&world->agenda, &player->turn, world->now + world_draw(world, think + 1));
}

static struct player *add_player(struct world *world, struct host *host, enum player_role role, bool datagram)
{
    if (world->count + 1 >= WORLD_PLAYERS) {
        world_complain(world, "too many players");
        return &world->players[0];
    }
    struct player *player = &world->players[++world->count];
    *player = (struct player){.world = world,
                              .host = host,
                              .role = role,
                              .datagram = datagram,
                              .uid = world->count,
                              .born = world->now,
                              .turn = {.expired = take_turn}};
    return player;
}

/* --- ending */

static bool is_faithful(const struct world *world)
{
    return !world->plan.forgery && !world->plan.scarcity;
}

/* An active one that was given the time has got the end of its attempt; so has a passive one that accepted. */
static void judge_end(struct player *player)
{
    struct world *world = player->world;
    bool answered = player->heard[CM_CONNECT_RESPONSE] || player->heard[CM_ESTABLISHED];
    bool failed = player->heard[CM_REJECTED] || player->heard[CM_UNREACHABLE];
    bool tried = player->role == PLAYER_ACTIVE || (player->accepted && !player->datagram);
    if (tried && !player->early && !answered && !failed && !player->heard[CM_DISCONNECTED])
        world_complain(world, "player %u never heard how it ended", player->uid);
}

static void destroy(struct player *player)
{
    struct world *world = player->world;
    if (!is_faithful(world) || world->now < player->born + 400 * NANOS_SECOND)
        player->early = true;
    judge_end(player);
    timer_stop(&world->agenda, &player->turn);
    uint32_t reported = identifier_destroy(player->identifier, world->now);
    if (reported != player->fetched)
        world_complain(world, "player %u fetched %u events, and %u are reported", player->uid, player->fetched,
                       reported);
    player->identifier = NULL;
}

static void leave_at_last(struct player *player)
{
    timer_set(&player->world->agenda, &player->turn, player->born + longest_life);
    player->next = destroy;
}

static void disconnect(struct player *player)
{
    player->ended = true;
    service_disconnect(player->identifier, player->world->now);
    if (world_hits(player->world, 500))
        plan_turn(player, 100 * NANOS_MILLISECOND, destroy);
    else
        leave_at_last(player);
}

/* The connection is established: some players end it soon, others never. */
static void live(struct player *player)
{
    uint64_t how = world_draw(player->world, 10);
    if (how < 4)
        plan_turn(player, 3 * NANOS_SECOND, disconnect);
    else if (how < 7)
        plan_turn(player, 3 * NANOS_SECOND, destroy);
    else
        leave_at_last(player);
}

/* --- the active side */

static struct cm_parameters draw_parameters(struct player *player)
{
    struct cm_parameters parameters = {.qpn = QPN_BASE + player->uid,
                                       .responder_resources = (uint8_t)world_draw(player->world, 16),
                                       .initiator_depth = (uint8_t)world_draw(player->world, 16),
                                       .retry_count = (uint8_t)world_draw(player->world, 8),
                                       .private_length = WORDS * sizeof(uint32_t)};
    uint32_t words[WORDS] = {player->uid, player->peer};
    memcpy(parameters.private_data, words, sizeof words);
    return parameters;
}

static uint32_t word_of(const struct cm_event *event, unsigned index)
{
    uint32_t words[WORDS];
    memcpy(words, event->parameters.private_data, sizeof words);
    return words[index];
}

/* The address is resolved. */
static void ask(struct player *player)
{
    struct world *world = player->world;
    struct cm_parameters parameters = draw_parameters(player);
    player->asked = true;
    int error = route_query_start(player->identifier, 1000, world->now);
    if (!error)
        error = service_connect(player->identifier, &parameters, &no_ece, world->now);
    if (error && is_faithful(world))
        world_complain(world, "player %u can't connect: %d", player->uid, error);
    if (error || world_hits(world, 100)) {
        player->early = true;
        plan_turn(player, 200 * NANOS_MILLISECOND, destroy);
    } else
        leave_at_last(player);
}

/* The neighbour answers at once, after some questions, or too late. */
static unsigned draw_questions(struct world *world)
{
    if (!world_hits(world, 200))
        return 0;
    return 1 + (unsigned)world_draw(world, world_hits(world, 200) ? 200 : 8);
}

static void connect_now(struct player *player)
{
    static const struct cm_address none;
    struct world *world = player->world;
    struct host *to = &world->hosts[world_draw(world, world->plan.hosts)];
    struct cm_address address = {.family = AF_INET, .port = (uint16_t)(BASE_PORT + world_draw(world, 5))};
    memcpy(address.gid, to->port.gid, 16);
    player->host->questions = draw_questions(world);
    int error = address_query_start(player->identifier, &none, &address, 2000, world->now);
    if (error || player->identifier->state == IDENTIFIER_ADDR_RESOLVED) {
        ask(player);
        return;
    }
    world->statistics.queried++;
    leave_at_last(player);
    if (world_hits(world, 100)) {
        player->early = true;
        plan_turn(player, 100 * NANOS_MILLISECOND, destroy);
    }
}

static void confirm(struct player *player)
{
    player->confirmed = true;
    service_confirm(player->identifier, player->world->now);
    live(player);
}

static void reject_it(struct player *player)
{
    player->ended = true;
    service_reject(player->identifier, 0, NULL, 0, player->world->now);
    plan_turn(player, NANOS_SECOND, destroy);
}

static void choose(struct player *player, void (*most)(struct player *))
{
    uint64_t how = world_draw(player->world, 20);
    plan_turn(player, 200 * NANOS_MILLISECOND, how < 16 ? most : how < 18 ? reject_it : destroy);
}

/* --- the passive side */

static void accept_it(struct player *player)
{
    struct world *world = player->world;
    struct cm_parameters parameters = draw_parameters(player);
    int error = service_accept(player->identifier, player->uid, &parameters, &no_ece, world->now);
    player->accepted = !error;
    if (error)
        plan_turn(player, NANOS_SECOND, destroy);
    else
        leave_at_last(player);
}

static void take_request(struct player *listener, const struct cm_event *event)
{
    struct world *world = listener->world;
    struct identifier *identifier = identifier_find(&listener->host->manager, event->number);
    if (!identifier) {
        world_complain(world, "a request for identifier %u, which is not there", event->number);
        return;
    }
    struct player *player = add_player(world, listener->host, PLAYER_PASSIVE, listener->datagram);
    player->identifier = identifier;
    player->peer = word_of(event, 0);
    if (is_faithful(world) && (!player->peer || player->peer > world->count))
        world_complain(world, "a request of no player");
    choose(player, accept_it);
}

/* --- the events */

static struct player *peer_of(struct player *player)
{
    return &player->world->players[player->peer < WORLD_PLAYERS ? player->peer : 0];
}

/* The two ends name each other and agree on numbers. */
static void check_peer(struct player *player, const struct cm_event *event)
{
    struct world *world = player->world;
    player->peer = word_of(event, 0);
    struct player *peer = peer_of(player);
    if (!is_faithful(world))
        return;
    if (word_of(event, 1) != player->uid || peer->role != PLAYER_PASSIVE || !peer->accepted ||
        event->parameters.qpn != QPN_BASE + peer->uid)
        world_complain(world, "player %u was answered by player %u, which answered another", player->uid, peer->uid);
}

static void check_attributes(struct player *player)
{
    struct ibv_qp_attr own, other;
    struct player *peer = peer_of(player);
    int mask;
    if (!is_faithful(player->world) || !peer->identifier || player->datagram)
        return;
    if (attributes_of(player->identifier, IBV_QPS_RTR, &own, &mask) ||
        attributes_of(peer->identifier, IBV_QPS_RTS, &other, &mask))
        return;
    if (own.rq_psn != other.sq_psn || own.dest_qp_num != QPN_BASE + peer->uid)
        world_complain(player->world, "players %u and %u don't agree", player->uid, peer->uid);
}

static bool is_last_word(enum cm_event_kind kind)
{
    return kind == CM_REJECTED || kind == CM_UNREACHABLE || kind == CM_DISCONNECTED;
}

/* Each at most once; nothing after the final event except the end of the timewait after DISCONNECTED. */
static void check_order(struct player *player, enum cm_event_kind kind)
{
    struct world *world = player->world;
    const uint8_t *heard = player->heard;
    bool over = heard[CM_REJECTED] || heard[CM_UNREACHABLE] || heard[CM_DISCONNECTED];
    if (heard[kind] && kind != CM_CONNECT_REQUEST)
        world_complain(world, "player %u hears event %u twice", player->uid, kind);
    bool early = kind == CM_TIMEWAIT_EXIT && !heard[CM_DISCONNECTED] && !world->plan.scarcity; /* memory was short */
    if (early || (kind != CM_TIMEWAIT_EXIT && over && !is_last_word(kind)))
        world_complain(world, "player %u hears event %u too late", player->uid, kind);
    if (is_last_word(kind) && heard[CM_DISCONNECTED])
        world_complain(world, "player %u hears event %u after DISCONNECTED", player->uid, kind);
}

static void count(struct world *world, enum cm_event_kind kind)
{
    world->statistics.events++;
    world->statistics.established += kind == CM_ESTABLISHED;
    world->statistics.rejected += kind == CM_REJECTED;
    world->statistics.unreachable += kind == CM_UNREACHABLE;
    world->statistics.disconnected += kind == CM_DISCONNECTED;
}

static void hear(struct player *player, const struct cm_event *event)
{
    struct world *world = player->world;
    player->fetched++;
    count(world, event->kind);
    if (player->role != PLAYER_LISTENER)
        check_order(player, event->kind);
    player->heard[event->kind] = 1;
    switch (event->kind) {
    case CM_ADDR_RESOLVED:
        if (!player->asked)
            ask(player);
        break;
    case CM_ADDR_ERROR:
        player->early = true;
        plan_turn(player, NANOS_SECOND, destroy);
        break;
    case CM_CONNECT_REQUEST:
        take_request(player, event);
        break;
    case CM_CONNECT_RESPONSE:
        check_peer(player, event);
        check_attributes(player);
        choose(player, confirm);
        break;
    case CM_ESTABLISHED:
        if (player->datagram)
            check_peer(player, event);
        else
            check_attributes(player);
        live(player);
        break;
    case CM_REJECTED:
    case CM_UNREACHABLE:
        plan_turn(player, NANOS_SECOND, destroy);
        break;
    case CM_DISCONNECTED:
        plan_turn(player, NANOS_SECOND, player->ended || world_hits(world, 300) ? destroy : disconnect);
        break;
    default:
        break;
    }
}

void players_fetch(struct world *world, struct host *host)
{
    struct cm_event *event = event_fetch(&host->queue);
    if (!event)
        return;
    host->signalled--;
    struct player *player = event->uid && event->uid <= world->count ? &world->players[event->uid] : NULL;
    if (!player || !player->identifier)
        world_complain(world, "event %u for player %u, which is gone", event->kind, (unsigned)event->uid);
    else
        hear(player, event);
    host->manager.operations->release(&host->manager, event);
}

/* --- beginning and end */

static bool create(struct player *player)
{
    return !identifier_create(&player->host->manager, &player->host->queue, player->uid,
                              player->datagram ? CM_SPACE_UDP : CM_SPACE_TCP, 0, &player->identifier);
}

static void begin_listener(struct world *world, struct host *host, uint16_t port, bool datagram)
{
    struct cm_address address = {.family = AF_INET, .port = port};
    struct player *player = add_player(world, host, PLAYER_LISTENER, datagram);
    memcpy(address.gid, host->port.gid, 16);
    if (!create(player))
        return;
    if (!identifier_bind(player->identifier, &address))
        identifier_listen(player->identifier, world_hits(world, 300) ? 2 : 100, world->now);
    if (world_hits(world, 200))
        plan_turn(player, 20 * NANOS_SECOND, destroy);
    else {
        player->next = destroy;
        timer_set(&world->agenda, &player->turn, world->now + 2 * longest_life);
    }
}

void players_begin(struct world *world)
{
    for (unsigned i = 0; i < world->plan.hosts; i++)
        for (uint16_t port = BASE_PORT; port < BASE_PORT + 4; port++) /* one port has no listener */
            begin_listener(world, &world->hosts[i], port, port == BASE_PORT);
    for (unsigned i = 0; i < world->plan.connections; i++) {
        struct host *host = &world->hosts[world_draw(world, world->plan.hosts)];
        struct player *player = add_player(world, host, PLAYER_ACTIVE, world_hits(world, 250));
        if (create(player))
            plan_turn(player, 10 * NANOS_SECOND, connect_now);
    }
}

void players_judge(struct world *world)
{
    for (unsigned i = 1; i <= world->count; i++)
        if (world->players[i].identifier)
            world_complain(world, "player %u is left", i);
}
