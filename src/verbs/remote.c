#include "verbs/remote.h"

#include <string.h>

#include "verbs/config.h"
#include "verbs/gid.h"
#include "verbs/port.h"
#include "verbs/traffic.h"
#include "wire/op.h"
#include "wire/wire.h"

enum { GRH = 40, CNP = SERVICE_CNP << 5 | 1 };

static const nanos notify_period = 50 * NANOS_MICROSECOND; /* one notification each, as adapters do by default */

bool remote_is_peer(const struct qp *qp, const struct packet *packet)
{
    union ibv_gid source, destination;
    if (qp->type == IBV_QPT_UD)
        return true;
    if (!packet->grh || !qp->remote)
        return !packet->grh && !qp->remote;
    gid_from_grh(packet->grh, &source, &destination);
    return !memcmp(&source, &qp->attr.ah_attr.grh.dgid, sizeof source);
}

bool remote_may_reach(const struct qp *qp, bool from_network)
{
    return !from_network || qp->object.context->device->interface[0];
}

static void send_alone(struct qp *qp, struct link *link, const struct packet *packet)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers};
    frame.headers_length = (uint16_t)wire_encode(packet, headers);
    link->operations->begin(link);
    if (link->operations->ready(link))
        traffic_send(qp, NULL, link, &frame);
    link->operations->end(link);
}

void remote_notify(struct qp *qp, nanos now)
{
    if (!qp->remote || now < qp->notified_at + notify_period)
        return;
    qp->notified_at = now;
    send_alone(qp, qp->remote,
               &(struct packet){.opcode = CNP,
                                .migrated = true,
                                .backward_congestion = true,
                                .pkey = DEVICE_PKEY,
                                .destination = qp->attr.dest_qp_num});
}

/* Without room it is lost, as on a network. */
void remote_hand_over(struct peer *peer, const struct udp_arrival *arrival)
{
    struct link *link = peer->link;
    const struct packet *packet = arrival->packet;
    uint8_t headers[FRAME_HEADERS_MAX] = {arrival->route->source_port >> 8, arrival->route->source_port & 0xff};
    memcpy(headers + REMOTE_PORT, packet->grh, GRH);
    unsigned length = wire_encode(packet, headers + REMOTE_PORT + GRH);
    struct frame frame = {.kind = FRAME_PASSED_ON,
                          .headers = headers,
                          .headers_length = (uint16_t)(REMOTE_PORT + GRH + length),
                          .payload = packet->payload};
    link->operations->begin(link);
    if (link->operations->ready(link))
        link->operations->send(link, &frame);
    link->operations->end(link);
}

bool remote_pass_on(struct process *process, const struct udp_arrival *arrival, uint32_t number)
{
    struct peer *peer = node_find(process->node, number);
    if (!peer)
        return false;
    bool other = peer->slot != node_slot(process->node);
    if (other)
        remote_hand_over(peer, arrival);
    node_put(process->node, peer);
    return other;
}

void remote_prefer_sender(struct process *process, const uint8_t port[REMOTE_PORT], const struct packet *packet)
{
    union ibv_gid source, destination;
    struct datagram_route route = {.source_port = (uint16_t)(port[0] << 8 | port[1])};
    gid_from_grh(packet->grh, &source, &destination);
    memcpy(route.source, &source, 16);
    memcpy(route.destination, &destination, 16);
    port_prefer(process, &route);
}

void remote_prefer(struct process *process, const uint8_t port[REMOTE_PORT], const struct packet *packet)
{
    if (op_service(packet->opcode) != SERVICE_UD)
        remote_prefer_sender(process, port, packet);
}
