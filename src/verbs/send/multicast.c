#include "verbs/send/multicast.h"

#include <string.h>

#include "base/container.h"
#include "config/device_state.h"
#include "config/gid.h"
#include "diag/log.h"
#include "process/progress.h"
#include "runtime/clock.h"
#include "tap/traffic.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/send/room.h"

/* The wait for members that take nothing. A receiver that lost its processor is back by then. */
static const nanos timeout = 100 * NANOS_MILLISECOND;

struct look {
    struct qp *qp;
    unsigned crowded; /* members without room that are worth waiting for */
    bool give_up;     /* do not wait for these any longer */
};

static void look_at_member(struct peer *peer, void *context)
{
    struct look *look = context;
    struct link *link = peer->link;
    bool behind = atomic_load_explicit(&peer->behind, memory_order_relaxed);
    link->operations->begin(link);
    bool room = behind || look->give_up ? link->operations->ready(link) : qp_has_room(look->qp, link);
    link->operations->end(link);
    if (room && behind)
        atomic_store(&peer->behind, false);
    if (room || behind)
        return;
    look->crowded++;
    if (look->give_up)
        atomic_store(&peer->behind, true);
}

static unsigned count_crowded(struct qp *qp, const uint8_t group[16], bool give_up)
{
    struct look look = {.qp = qp, .give_up = give_up};
    node_members(qp->process->node, group, look_at_member, &look);
    return look.crowded;
}

bool multicast_has_room(struct qp *qp, const uint8_t group[16])
{
    qp->groups.wake = NANOS_NEVER;
    if (!count_crowded(qp, group, false)) {
        qp->groups.since = 0;
        return true;
    }
    nanos now = clock_now();
    if (!qp->groups.since)
        qp->groups.since = now;
    if (now < qp->groups.since + timeout) {
        qp->groups.wake = qp->groups.since + timeout;
        qp_expire_by(qp, qp->groups.wake);
        return false;
    }
    count_crowded(qp, group, true);
    qp->groups.since = 0;
    return true;
}

void multicast_forget(struct qp *qp)
{
    qp->groups.since = 0;
    qp->groups.wake = NANOS_NEVER;
}

struct multicast {
    struct qp *qp;
    const struct frame *frame;
    unsigned members;
    bool read;
};

/* A frame that a fault delayed may have taken the room that was seen before; then this frame waits with the delayed
 * ones. */
static void send_to_member(struct peer *peer, void *context)
{
    struct multicast *multicast = context;
    struct qp *qp = multicast->qp;
    struct link *link = peer->link;
    multicast->members++;
    link->operations->begin(link);
    bool waits = traffic_is_faulty(&qp->process->traffic) && !atomic_load_explicit(&peer->behind, memory_order_relaxed);
    bool room = link->operations->ready(link) || waits;
    if (room)
        multicast->read &= traffic_send(qp_flow(qp), peer, link, multicast->frame);
    link->operations->end(link);
    if (!room)
        traffic_missed(qp_flow(qp), peer);
}

bool multicast_send(struct qp *qp, const uint8_t group[16], const struct frame *frame, unsigned *members)
{
    lock_assert_held(&qp->lock);
    struct multicast multicast = {qp, frame, .read = true};
    node_members(qp->process->node, group, send_to_member, &multicast);
    *members = multicast.members;
    return multicast.read;
}

/* Returns true if this queue pair sent the datagram, and gets no copy of its datagrams. A queue pair of another host
 * may have the same number, but not the same GID. */
static bool is_blocked(const struct qp *qp, const struct packet *packet, const union ibv_gid *source)
{
    return (qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) && packet->source == qp->number &&
           device_state_find(device_now(qp_flow(qp)->device), source) >= 0;
}

/* Delivers a datagram to each queue pair here that is attached to the group. */
static enum endpoint_output receive_multicast(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct process *process = container_of(endpoint, struct process, multicast);
    const struct packet *packet = arrival->from.packet;
    struct group *group;
    union ibv_gid source, destination;
    bool joined = false;
    if (!packet->grh) {
        traffic_stray(&process->traffic, packet, arrival->from.route, REASON_PACKET_NOT_JOINED, "without a GRH");
        return ENDPOINT_NOTHING;
    }
    gid_from_grh(packet->grh, &source, &destination);
    LIST_FOREACH (group, &process_objects(process)->groups, siblings)
        if (!memcmp(&group->gid, &destination, sizeof destination)) {
            if (!is_blocked(group->qp, packet, &source))
                progress_deliver(process, qp_endpoint(group->qp), arrival);
            joined = true;
        }
    if (!joined)
        traffic_stray(&process->traffic, packet, arrival->from.route, REASON_PACKET_NOT_JOINED, "psn %u from qp 0x%x",
                      packet->psn, packet->source);
    return ENDPOINT_NOTHING;
}

void multicast_begin(struct process *process)
{
    static const struct endpoint_operations operations = {.receive = receive_multicast};
    process->multicast.operations = &operations;
}
