#include "verbs/remote.h"

#include <string.h>

#include "verbs/gid.h"
#include "wire/wire.h"

enum { GRH = 40 };

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

/* Without room it is lost, as on a network. */
static void hand_over(struct link *link, const struct packet *packet)
{
    uint8_t headers[FRAME_HEADERS_MAX];
    memcpy(headers, packet->grh, GRH);
    struct frame frame = {.kind = FRAME_GRH,
                          .headers = headers,
                          .headers_length = (uint16_t)(GRH + wire_encode(packet, headers + GRH)),
                          .payload = packet->payload};
    link->operations->begin(link);
    if (link->operations->ready(link))
        link->operations->send(link, &frame);
    link->operations->end(link);
}

bool remote_pass_on(struct process *process, const struct packet *packet)
{
    struct peer *peer = node_find(process->node, packet->destination);
    if (!peer)
        return false;
    bool other = peer->slot != node_slot(process->node);
    if (other)
        hand_over(peer->link, packet);
    node_put(process->node, peer);
    return other;
}
