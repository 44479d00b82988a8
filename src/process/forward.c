#include "process/forward.h"

#include <string.h>

#include "config/gid.h"
#include "process/port.h"
#include "runtime/clock.h"
#include "tap/traffic.h"
#include "wire/bytes.h"
#include "wire/grh.h"
#include "wire/op.h"
#include "wire/wire.h"

_Static_assert((int)FORWARD_ARRIVAL + 40 + (int)WIRE_HEADERS_MAX <= (int)FRAME_HEADERS_MAX,
               "a frame that is passed on fits");

/* Loses the packet if the link has no room, as a network does. */
bool forward_to(struct peer *peer, const struct udp_arrival *arrival)
{
    struct link *link = peer->link;
    const struct packet *packet = arrival->packet;
    uint8_t headers[FRAME_HEADERS_MAX] = {0};
    bytes_put16(headers, arrival->route->source_port);
    bytes_put32(headers + 4, arrival->interface);
    memcpy(headers + FORWARD_ARRIVAL, packet->grh, GRH_LENGTH);
    unsigned length = wire_encode(packet, headers + FORWARD_ARRIVAL + GRH_LENGTH);
    struct frame frame = {.kind = FRAME_FORWARDED,
                          .headers = headers,
                          .headers_length = (uint16_t)(FORWARD_ARRIVAL + GRH_LENGTH + length),
                          .payload = packet->payload};
    link->operations->begin(link);
    bool room = link->operations->ready(link);
    if (room)
        link->operations->send(link, &frame);
    link->operations->end(link);
    return room;
}

bool forward_datagram(struct process *process, const struct udp_arrival *arrival, uint32_t number)
{
    lock_assert_held(&process->progress);
    struct peer *peer = node_find(process->node, number);
    if (!peer)
        return false;
    bool other = peer->slot != node_slot(process->node);
    if (other && !forward_to(peer, arrival))
        traffic_stray(&process->traffic, arrival->packet, arrival->route, REASON_PACKET_FORWARDED, "to process %d",
                      (int)peer->pid);
    node_put(process->node, peer);
    return other;
}

unsigned forward_interface(const uint8_t arrival[FORWARD_ARRIVAL])
{
    return bytes_get32(arrival + 4);
}

void forward_prefer_sender(struct process *process, const uint8_t arrival[FORWARD_ARRIVAL], const struct packet *packet)
{
    lock_assert_held(&process->progress);
    union ibv_gid source, destination;
    struct datagram_route route = {.source_port = bytes_get16(arrival)};
    gid_from_grh(packet->grh, &source, &destination);
    memcpy(route.source, &source, 16);
    memcpy(route.destination, &destination, 16);
    port_prefer(process, &route, forward_interface(arrival), clock_about_now());
}

void forward_prefer(struct process *process, const uint8_t arrival[FORWARD_ARRIVAL], const struct packet *packet)
{
    if (op_service(packet->opcode) != SERVICE_UD)
        forward_prefer_sender(process, arrival, packet);
}
