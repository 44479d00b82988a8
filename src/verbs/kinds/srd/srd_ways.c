#include "verbs/kinds/srd/srd_ways.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/device_state.h"
#include "config/local_gid.h"
#include "link/link.h"
#include "process/port.h"
#include "tap/delay.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_doors.h"
#include "wire/datagram.h"

enum { WAYS = 16, PEERS = 8, HOP_LIMIT = 64 };

/* A process of this host that was found. */
struct known_peer {
    uint32_t owner; /* node_owner of its numbers; 0: none is known */
    struct peer *peer;
};

struct srd_ways {
    struct known_peer peers[PEERS]; /* by owner */
    unsigned departures;            /* node_departures, when they were last looked at */
    unsigned last, next;            /* the way that was used last; the next to be replaced */
    struct srd_way kept[WAYS];
};

int srd_ways_make(struct qp *qp)
{
    qp->sends.ways = calloc(1, sizeof *qp->sends.ways);
    return qp->sends.ways ? 0 : ENOMEM;
}

/* ---- processes of this host ---- */

static void forget_peer(struct qp *qp, struct known_peer *known)
{
    if (known->peer && !qp->process->forked)
        node_put(qp->process->node, known->peer);
    *known = (struct known_peer){0};
}

/* A process that has ended must not keep memory and descriptors until another one needs its place. */
cold static void forget_departed(struct qp *qp, unsigned departures)
{
    struct srd_ways *ways = qp->sends.ways;
    ways->departures = departures;
    for (unsigned i = 0; i < PEERS; i++)
        if (ways->peers[i].peer && ways->peers[i].peer->gone)
            forget_peer(qp, &ways->peers[i]);
}

cold static struct peer *find_anew(struct qp *qp, struct known_peer *known, uint32_t owner)
{
    forget_peer(qp, known);
    struct peer *peer = node_find_owner(qp->process->node, owner);
    if (peer)
        *known = (struct known_peer){owner, peer};
    return peer;
}

struct peer *srd_ways_peer(struct qp *qp, uint32_t number)
{
    lock_assert_held(&qp->lock);
    struct srd_ways *ways = qp->sends.ways;
    struct node *node = qp->process->node;
    unsigned departures = node_departures(node);
    if (unlikely(ways->departures != departures))
        forget_departed(qp, departures);
    uint32_t owner = node_owner(node, number);
    struct known_peer *known = &ways->peers[owner % PEERS];
    bool holds = owner && known->owner == owner && !known->peer->gone;
    return likely(holds) ? known->peer : find_anew(qp, known, owner);
}

/* ---- addresses ---- */

/* Writes the address of the device from which a packet to this address leaves. */
static void choose_source(const struct qp *qp, const uint8_t gid[16], uint8_t source[16])
{
    const struct device_state *now = device_now(qp->object.context->device);
    unsigned index = now->first_gid;
    for (unsigned i = now->first_gid; i < now->gid_count; i++)
        if (device_state_has(now, i) && grh_is_ipv4(now->gids[i].raw) == grh_is_ipv4(gid)) {
            index = i;
            break;
        }
    memcpy(source, now->gids[index].raw, 16);
}

static void write_response_grh(struct srd_way *way, const uint8_t source[16])
{
    grh_write(
        way->grh,
        &(struct grh_route){
            .source = source, .destination = way->gid, .hop_limit = HOP_LIMIT, .fragment = DATAGRAM_DONT_FRAGMENT},
        0);
}

/* Finds out what changes with the addresses of devices. */
static void look_up(const struct qp *qp, struct srd_way *way)
{
    union ibv_gid to;
    uint8_t source[16];
    way->changes = atomic_load_explicit(&device_changes, memory_order_acquire);
    memcpy(to.raw, way->gid, sizeof to.raw);
    way->local = config_local_gid(&to);
    choose_source(qp, way->gid, source);
    write_response_grh(way, source);
}

static void open_link(struct qp *qp, struct srd_way *way)
{
    union ibv_gid from, to;
    choose_source(qp, way->gid, from.raw);
    memcpy(to.raw, way->gid, sizeof to.raw);
    way->link = port_reply_link(qp->process, qp->object.context->device, &from, &to);
}

static void close_link(struct qp *qp, struct srd_way *way)
{
    struct link *link = way->link;
    way->link = NULL;
    if (!link || qp->process->inherited)
        return;
    delay_forget(traffic_taps(&qp->process->traffic), link);
    link->operations->close(link);
}

static void close_way(struct qp *qp, struct srd_way *way)
{
    close_link(qp, way);
    *way = (struct srd_way){0};
}

static bool leads_to(const struct srd_way *way, const uint8_t gid[16])
{
    return way->known && !memcmp(way->gid, gid, 16);
}

/* The place of the way to this address: its own, or the one whose turn it is. */
static unsigned place_of(struct qp *qp, const uint8_t gid[16])
{
    struct srd_ways *ways = qp->sends.ways;
    for (unsigned i = 0; i < WAYS; i++)
        if (leads_to(&ways->kept[i], gid))
            return i;
    unsigned place = ways->next++ % WAYS;
    close_way(qp, &ways->kept[place]);
    memcpy(ways->kept[place].gid, gid, 16);
    return place;
}

cold static const struct srd_way *find_way(struct qp *qp, const uint8_t gid[16])
{
    struct srd_ways *ways = qp->sends.ways;
    ways->last = place_of(qp, gid);
    struct srd_way *way = &ways->kept[ways->last];
    uint8_t before[GRH_LENGTH];
    memcpy(before, way->grh, sizeof before);
    look_up(qp, way);
    if (memcmp(way->grh, before, sizeof before) != 0)
        close_link(qp, way); /* it sends from the address before */
    way->known = true;
    if (!way->local && !way->link && qp->object.context->device->interface[0])
        open_link(qp, way);
    return way;
}

const struct srd_way *srd_ways_find(struct qp *qp, const uint8_t gid[16])
{
    lock_assert_held(&qp->lock);
    const struct srd_way *way = &qp->sends.ways->kept[qp->sends.ways->last];
    bool holds = leads_to(way, gid) && way->changes == atomic_load_explicit(&device_changes, memory_order_acquire) &&
                 (way->local || way->link);
    return likely(holds) ? way : find_way(qp, gid);
}

/* ---- ends ---- */

void srd_ways_close(struct qp *qp)
{
    struct srd_ways *ways = qp->sends.ways;
    for (unsigned i = 0; ways && i < PEERS; i++)
        forget_peer(qp, &ways->peers[i]);
    for (unsigned i = 0; ways && i < WAYS; i++)
        close_way(qp, &ways->kept[i]);
}

void srd_ways_free(struct qp *qp)
{
    srd_ways_close(qp);
    free(qp->sends.ways);
    qp->sends.ways = NULL;
}
