#include <string.h>

#include "config/local_gid.h"
#include "process/process.h"
#include "tap/traffic.h"
#include "verbs/kinds/srd/srd.h"
#include "verbs/kinds/srd/srd_ways.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_path.h"
#include "verbs/send/ah.h"
#include "verbs/send/room.h"
#include "wire/datagram.h"
#include "wire/grh.h"
#include "wire/wire.h"

enum { HOP_LIMIT = 64 };

/* Writes a packet's headers after this GRH. */
static void fill_frame(const uint8_t grh[GRH_LENGTH], const struct packet *packet, uint8_t *headers,
                       struct frame *frame)
{
    enum { UDP = 8 };
    memcpy(headers, grh, GRH_LENGTH);
    unsigned length = wire_encode(packet, headers + GRH_LENGTH);
    grh_set_length(headers, UDP + length + ((packet->payload.length + 3) & ~3u) + DATAGRAM_ICRC);
    *frame = (struct frame){.kind = FRAME_GRH,
                            .headers = headers,
                            .headers_length = (uint16_t)(GRH_LENGTH + length),
                            .payload = packet->payload};
}

/* Writes the GRH of an answer. */
static void write_grh_back(const struct qp *qp, const uint8_t gid[16], uint8_t grh[GRH_LENGTH])
{
    uint8_t source[16];
    srd_ways_source(qp, gid, source);
    grh_write(grh,
              &(struct grh_route){
                  .source = source, .destination = gid, .hop_limit = HOP_LIMIT, .fragment = DATAGRAM_DONT_FRAGMENT},
              0);
}

/* Where a packet goes. */
struct way {
    struct peer *peer; /* on this host; give it back */
    struct link *link; /* NULL: no link leads there */
    bool local;
};

static struct way find_local(struct qp *qp, uint32_t number)
{
    struct peer *peer = node_find(qp->process->node, number);
    return (struct way){peer, peer ? peer->link : NULL, true};
}

/* The way of an answer. */
static struct way way_back(struct qp *qp, const uint8_t gid[16], uint32_t number)
{
    union ibv_gid address;
    memcpy(address.raw, gid, 16);
    if (config_local_gid(&address))
        return find_local(qp, number);
    return (struct way){NULL, srd_ways_find(qp, gid), false};
}

static struct way find_way(struct qp *qp, const struct engine_target *target)
{
    const struct ah *ah = target->address;
    if (qp_port_is_down(qp))
        return (struct way){NULL, NULL, false};
    if (!ah)
        return way_back(qp, target->gid, target->number);
    return ah->local ? find_local(qp, target->number) : (struct way){NULL, ah->remote, false};
}

static void leave_way(struct qp *qp, const struct way *way)
{
    if (way->peer)
        node_put(qp->process->node, way->peer);
}

/* Sends the packet into the link, between its begin and end. False: the memory of its payload is gone. */
static bool send_into(struct qp *qp, const struct way *way, const uint8_t grh[GRH_LENGTH], const struct packet *packet)
{
    uint8_t headers[FRAME_HEADERS_MAX];
    struct frame frame;
    fill_frame(grh, packet, headers, &frame);
    return traffic_send(qp_flow(qp), way->peer, way->link, &frame);
}

void srd_respond(struct qp *qp, const uint8_t gid[16], const struct packet *packet)
{
    lock_assert_held(&qp->lock);
    uint8_t grh[GRH_LENGTH];
    struct way way = qp_port_is_down(qp) ? (struct way){0} : way_back(qp, gid, packet->destination);
    if (!way.link)
        return leave_way(qp, &way);
    write_grh_back(qp, gid, grh);
    way.link->operations->begin(way.link);
    if (way.link->operations->ready(way.link))
        send_into(qp, &way, grh, packet);
    traffic_end_batch(qp_flow(qp), way.link);
    leave_way(qp, &way);
}

/* Sends the engine's next packet, if it can be made; without a link it is lost. */
static void send_next(struct qp *qp, const struct way *way, const struct engine_target *target, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t grh[GRH_LENGTH];
    const struct ah *ah = target->address;
    if (!ah)
        write_grh_back(qp, target->gid, grh);
    if (!engine_transmit(qp_engine(qp), &packet, pieces, now) || !way->link)
        return;
    if (!send_into(qp, way, ah ? ah->grh : grh, &packet))
        engine_unreadable(qp_engine(qp), &packet);
}

/* Sends one packet, or does as its target's absence demands. */
static void transmit_message(struct qp *qp, const struct engine_target *target, nanos now)
{
    struct way way = find_way(qp, target);
    if (way.local && !way.link)
        return engine_nobody(qp_engine(qp));
    if (!way.link)
        return send_next(qp, &way, target, now);
    way.link->operations->begin(way.link);
    if (qp_has_room(qp, way.link))
        send_next(qp, &way, target, now);
    else
        engine_hold(qp_engine(qp), now);
    traffic_end_batch(qp_flow(qp), way.link);
    leave_way(qp, &way);
}

void srd_transmit(struct qp *qp, nanos now)
{
    struct engine_target target;
    engine_retry(qp_engine(qp));
    while (engine_next_message(qp_engine(qp), &target))
        transmit_message(qp, &target, now);
}
