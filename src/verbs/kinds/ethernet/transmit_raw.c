/* Sends raw packets to all processes of the host that want them. */
#include "tap/traffic.h"
#include "verbs/kinds/ethernet/qp_raw.h"
#include "verbs/kinds/ethernet/steering.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_path.h"
#include "verbs/send/rate_limit.h"
#include "verbs/send/room.h"
#include "wire/bytes.h"

/* A frame on its way to the processes of the host. */
struct broadcast {
    struct qp *qp;
    struct frame frame;
    struct iovec piece;
    uint8_t header[STEERING_HEADER];
    bool full;                       /* a receiver of the frame has no room */
    uint64_t given[NODE_SLOTS / 64]; /* processes that have it already */
};

static void ask_for_room(struct peer *peer, void *context)
{
    struct broadcast *broadcast = context;
    struct link *link = peer->link;
    link->operations->begin(link);
    broadcast->full = broadcast->full || !qp_has_room(broadcast->qp, link);
    link->operations->end(link);
}

static void give(struct peer *peer, void *context)
{
    struct broadcast *broadcast = context;
    struct link *link = peer->link;
    uint64_t *word = &broadcast->given[peer->slot / 64], bit = 1ull << peer->slot % 64;
    if (*word & bit)
        return;
    *word |= bit;
    link->operations->begin(link);
    if (link->operations->ready(link))
        traffic_send(qp_flow(broadcast->qp), peer, link, &broadcast->frame);
    else
        traffic_missed(qp_flow(broadcast->qp), peer);
    link->operations->end(link);
}

static void transmit_raw_prepare(struct broadcast *broadcast, struct qp *qp, uint8_t *bytes, uint32_t length)
{
    *broadcast = (struct broadcast){.qp = qp, .piece = {bytes, length}};
    bytes_put32(broadcast->header, qp->number);
    broadcast->frame = (struct frame){
        .kind = FRAME_ETHERNET,
        .headers_length = STEERING_HEADER,
        .headers = broadcast->header,
        .payload = {.length = length, .count = 1, .pieces = &broadcast->piece},
    };
}

/* A unicast frame waits until the processes that asked for its address have room, as on a network with pause frames:
 * programs that take turns lose nothing. Receivers of multicast and of all frames hold no sender up. False: the
 * frame waits. */
static bool send_frame(struct qp *qp, uint8_t *bytes, uint32_t length)
{
    struct node *node = qp->process->node;
    struct broadcast broadcast;
    uint8_t group[16];
    if (qp_port_is_down(qp) || steering_withholds(qp, bytes, length))
        return true;
    transmit_raw_prepare(&broadcast, qp, bytes, length);
    steering_group(bytes, group);
    if (!ether_is_multicast(bytes))
        node_members(node, group, ask_for_room, &broadcast);
    if (broadcast.full)
        return false;
    node_members(node, group, give, &broadcast);
    steering_group(NULL, group);
    node_members(node, group, give, &broadcast);
    return true;
}

void qp_raw_transmit(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    uint8_t frame[RAW_FRAME_MAX];
    uint32_t length;
    while (engine_next_frame(qp_engine(qp), frame, &length) && !(qp->rate_limit.rate && rate_limit_holds(qp)) &&
           send_frame(qp, frame, length)) {
        engine_frame_sent(qp_engine(qp));
        if (qp->rate_limit.rate)
            rate_limit_count(qp, length);
    }
}
