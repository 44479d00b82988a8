#include <string.h>

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

/* Where a packet goes. */
struct way {
    struct peer *peer; /* on this host */
    struct link *link; /* NULL: no link leads there */
    const uint8_t *grh;
    bool local;
};

static inline struct way way_to(struct qp *qp, uint32_t number, bool local, struct link *remote, const uint8_t *grh)
{
    struct peer *peer = local ? srd_ways_peer(qp, number) : NULL;
    return (struct way){peer, peer ? peer->link : remote, grh, local};
}

/* The way of an answer. */
static inline struct way way_back(struct qp *qp, const uint8_t gid[16], uint32_t number)
{
    const struct srd_way *back = srd_ways_find(qp, gid);
    return way_to(qp, number, back->local, back->local ? NULL : back->link, back->grh);
}

static inline struct way find_way(struct qp *qp, const struct engine_target *target)
{
    const struct ah *ah = target->address;
    struct way way = ah ? way_to(qp, target->number, ah->local, ah->local ? NULL : ah->remote, ah->grh)
                        : way_back(qp, target->gid, target->number);
    if (unlikely(qp_port_is_down(qp)))
        return (struct way){.grh = way.grh};
    return way;
}

/* Sends the packet into the link, between its begin and end. False: the memory of its payload is gone. */
static inline bool send_into(struct qp *qp, const struct way *way, const struct packet *packet)
{
    enum { UDP = 8 };
    uint8_t headers[FRAME_HEADERS_MAX];
    memcpy(headers, way->grh, GRH_LENGTH);
    unsigned length = wire_encode(packet, headers + GRH_LENGTH);
    grh_set_length(headers, UDP + length + ((packet->payload.length + 3) & ~3u) + DATAGRAM_ICRC);
    const struct frame frame = {.kind = FRAME_GRH,
                                .headers = headers,
                                .headers_length = (uint16_t)(GRH_LENGTH + length),
                                .payload = packet->payload};
    enum operation operation = op_operation((uint8_t)(packet->bth[0] >> 24));
    return traffic_send_request(qp_flow(qp), way->peer, way->link, &frame, operation);
}

void srd_respond(struct qp *qp, const uint8_t gid[16], const struct packet *packet)
{
    lock_assert_held(&qp->lock);
    struct way way = find_way(qp, &(struct engine_target){.gid = gid, .number = packet->destination});
    if (!way.link)
        return;
    if (way.link->operations->begin(way.link) || way.link->operations->ready(way.link))
        send_into(qp, &way, packet);
    traffic_end_batch(qp_flow(qp), way.link);
}

/* Sends the engine's next packet, if it can be made; without a link it is lost. */
static inline void send_next(struct qp *qp, const struct way *way, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    if (!engine_transmit_message(qp_engine(qp), &packet, pieces, now) || !way->link)
        return;
    if (!send_into(qp, way, &packet))
        engine_unreadable(qp_engine(qp), &packet);
}

/* Sends one packet, or does as its target's absence demands. */
static inline void transmit_message(struct qp *qp, const struct engine_target *target, nanos now)
{
    struct way way = find_way(qp, target);
    if (unlikely(way.local && !way.link))
        return engine_nobody(qp_engine(qp));
    if (unlikely(!way.link))
        return send_next(qp, &way, now);
    if (way.link->operations->begin(way.link) || qp_has_room(qp, way.link))
        send_next(qp, &way, now);
    else
        engine_hold(qp_engine(qp), now);
    traffic_end_batch(qp_flow(qp), way.link);
}

/* Flattened: most packets leave without a call. */
__attribute__((flatten)) void srd_transmit(struct qp *qp, nanos now)
{
    struct engine_target target;
    engine_retry(qp_engine(qp));
    while (engine_next_message(qp_engine(qp), &target))
        transmit_message(qp, &target, now);
}
