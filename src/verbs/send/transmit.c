#include "verbs/send/transmit.h"

#include <string.h>

#include "base/likely.h"
#include "diag/log.h"
#include "link/guard.h"
#include "process/progress.h"
#include "process/restraints.h"
#include "runtime/clock.h"
#include "tap/traffic.h"
#include "transport/engine/inlined.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_path.h"
#include "verbs/queue/srq.h"
#include "verbs/send/ah.h"
#include "verbs/send/lost.h"
#include "verbs/send/multicast.h"
#include "verbs/send/rate_limit.h"
#include "verbs/send/room.h"
#include "wire/datagram.h"
#include "wire/grh.h"
#include "wire/lrh.h"
#include "wire/psn.h"
#include "wire/wire.h"

/* Returns true if a peer that is gone had taken all frames. Faults lose frames before its ring, and a broken ring loses
 * its frames. */
static bool has_taken_all(struct qp *qp)
{
    struct link *link = qp->path.peer->link;
    return qp_is_reliable(qp) && !traffic_is_faulty(&qp->process->traffic) && !atomic_load(&link->lossy) &&
           link->operations->consumed(link);
}

bool qp_was_taken(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct peer *peer = qp->path.peer;
    return peer ? !node_alive(qp->process->node, peer) && has_taken_all(qp)
                : qp->path.taken && qp->path.taken_psn == engine_sent_psn(qp_engine(qp));
}

/* Lets go of the peer. Keeps how much it had taken, for qp_was_taken, and its process: its NAK may arrive later. */
static void part_from_peer(struct qp *qp)
{
    qp->path.parted_from = qp->path.peer->pid;
    qp->path.parted_slot = (uint16_t)qp->path.peer->slot;
    qp->path.taken = has_taken_all(qp);
    if (qp->path.taken)
        qp->path.taken_psn = engine_sent_psn(qp_engine(qp));
    node_put(qp->process->node, qp->path.peer);
}

/* Looks up the peer of a connected queue pair again, when it was unknown or has ended. */
cold static struct peer *find_peer_anew(struct qp *qp)
{
    qp->path.peer_ended |= qp->path.peer || qp->path.peer_claimed;
    if (qp->path.peer)
        part_from_peer(qp);
    qp->path.peer = qp->path.local ? node_find(qp->process->node, qp->attr.dest_qp_num) : NULL;
    qp->path.peer_ended &= !qp->path.peer;
    return qp->path.peer;
}

static inline struct peer *find_peer(struct qp *qp)
{
    struct peer *peer = qp->path.peer;
    return likely(peer && !peer->gone) ? peer : find_peer_anew(qp);
}

/* Finds the link to the peer of a connected queue pair; NULL: packets are lost. */
static inline struct link *find_link(struct qp *qp)
{
    if (qp_port_is_down(qp))
        return NULL;
    if (qp->path.remote)
        return qp->path.remote;
    struct peer *peer = find_peer(qp);
    return peer ? peer->link : NULL;
}

/* Sends the packet. False: the memory of its payload is gone. */
static inline bool send_packet(struct qp *qp, struct link *link, const struct packet *packet)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    const struct frame frame = {.kind = FRAME_ROCE,
                                .headers_length = (uint16_t)wire_encode(packet, headers),
                                .headers = headers,
                                .payload = packet->payload};
    if (unlikely(qp_is_watched(qp)))
        rate_limit_count(qp, frame.headers_length + packet->payload.length);
    return traffic_send(qp_flow(qp), qp->path.remote ? NULL : qp->path.peer, link, &frame);
}

bool qp_send_packet(struct qp *qp, const struct packet *packet)
{
    lock_assert_held(&qp->lock);
    struct link *link = find_link(qp);
    if (!link)
        return true;
    link->operations->begin(link);
    bool room = qp_has_room(qp, link);
    if (room)
        send_packet(qp, link, packet);
    traffic_end_batch(qp_flow(qp), link);
    return room;
}

/* Returns true if the output must wait. A rate never delays responses to the peer's requests. */
cold static bool is_held_watched(struct qp *qp)
{
    struct disturbance *disturbance = qp_datapath(qp)->disturbance;
    bool response = qp_is_reliable(qp) && engine_owes_responses(qp_engine(qp));
    return (!response && rate_limit_holds(qp)) || (disturbance && disturbance->holds(qp, response, clock_now()));
}

static inline bool is_held(struct qp *qp)
{
    return unlikely(qp_is_watched(qp)) && is_held_watched(qp);
}

/* engine_transmit returns whether it has output; a caller that does not call it, as the link has no room or the rate
 * does not permit it, must know before whether to wait. `ready`: the link is known to be ready. */
static inline bool may_transmit_rc(struct qp *qp, struct link *link, bool ready)
{
    if (!engine_may_have_output(qp_engine(qp)))
        return false;
    if (likely(!qp_is_watched(qp) && (ready || link->operations->ready(link))))
        return true;
    return engine_has_output(qp_engine(qp)) && !is_held(qp) && qp_has_room(qp, link);
}

/* Loses the packets, as no link leads to the peer; timers do the rest. */
cold static void transmit_rc_nowhere(struct qp *qp, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    while (qp_door_transmit_reliable(qp, &packet, pieces, now))
        ;
}

/* Transmits everything that the engine has and the link has room for. */
cold static void transmit_all(struct qp *qp, struct link *link, bool ready, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint32_t fresh = engine_sent_psn(qp_engine(qp));
    qp_flow(qp)->now = now;
    while (may_transmit_rc(qp, link, ready) && qp_door_transmit_reliable(qp, &packet, pieces, now)) {
        traffic_retransmitted(qp_flow(qp), &packet, fresh);
        fresh = engine_sent_psn(qp_engine(qp));
        if (!send_packet(qp, link, &packet))
            qp_door_unreadable(qp, &packet);
        ready = false;
    }
}

/* All fields of the packet stay in registers, if its address is passed to no function. `along` is a constant. */
__attribute__((always_inline)) static inline bool transmit_single_as(struct qp *qp, struct link *link, bool along,
                                                                     nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t headers[WIRE_HEADERS_MAX];
    if (!engine_transmit_single(qp_engine(qp), &packet, pieces, now))
        return false;
    uint32_t psn = packet.bth[2] & PSN_MASK;
    const struct frame frame = {.kind = FRAME_ROCE,
                                .headers_length = (uint16_t)wire_encode(&packet, headers),
                                .headers = headers,
                                .payload = {packet.payload.length, packet.payload.count, pieces},
                                .along = along ? engine_take_along(qp_engine(qp)) : 0};
    enum operation operation = op_operation((uint8_t)(packet.bth[0] >> 24));
    bool read =
        traffic_send_request(qp_flow(qp), qp->path.peer, link, &frame, operation); /* a remote link has no peer */
    if (unlikely(!read)) {
        engine_unreadable_request(qp_engine(qp), psn);
        engine_take_back_along(qp_engine(qp), frame.along);
    }
    return true;
}

cold __attribute__((flatten)) static bool transmit_with_ack(struct qp *qp, struct link *link, nanos now)
{
    return transmit_single_as(qp, link, true, now);
}

/* Transmits a new request that is a whole message, and not a reference. False: the next output is no such request. */
static inline bool transmit_single(struct qp *qp, struct link *link, nanos now)
{
    return unlikely(engine_owes_late(qp_engine(qp))) ? transmit_with_ack(qp, link, now)
                                                     : transmit_single_as(qp, link, false, now);
}

/* Transmits messages of one packet for as long as they are next, then everything. `ready`: the link is ready. */
static inline void transmit_output(struct qp *qp, struct link *link, bool ready, nanos now)
{
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    while (ready && transmit_single(qp, link, now)) {
        if (queue->next == queue->tail)
            return;
        ready = link->operations->ready(link);
    }
    transmit_all(qp, link, ready, now);
}

/* Posts the work of rendezvous, and sends all of it except the last part. */
cold static void transmit_rendezvous(struct qp *qp, nanos now)
{
    struct link *link;
    while (qp->uses.srq->kind->post(qp) && (link = find_link(qp))) {
        link->operations->begin(link);
        transmit_all(qp, link, false, now);
        traffic_end_batch(qp_flow(qp), link);
    }
}

/* Flattened: the fields of a request of one packet are written straight into its headers, most of it without a call. */
__attribute__((flatten)) static void transmit_rc(struct qp *qp, nanos now)
{
    if (unlikely(tags_have_work(&qp_tags(qp)->port)))
        transmit_rendezvous(qp, now);
    struct link *link = find_link(qp);
    if (unlikely(!link))
        return transmit_rc_nowhere(qp, now);
    if (unlikely(atomic_load_explicit(&link->directs, memory_order_relaxed))) {
        if (qp_transmit_directly(qp, link))
            return;
    } else
        engine_allow_direct(qp_engine(qp), false);
    bool ready = link->operations->begin(link) && !qp_is_watched(qp);
    if (!engine_settings_of(qp_engine(qp))->reference_segment && traffic_may_reference(&qp->process->traffic, link))
        qp_door_allow_references(qp, LINK_REFERENCE_SEGMENT);
    transmit_output(qp, link, ready, now);
    traffic_end_batch(qp_flow(qp), link);
}

void qp_transmit_reliable(struct qp *qp, nanos now)
{
    transmit_rc(qp, now);
}

void qp_transmit_connected(struct qp *qp, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    struct link *link = find_link(qp);
    if (!link) {
        while (qp_door_transmit(qp, &packet, pieces, now))
            ;
        return;
    }
    link->operations->begin(link);
    while (engine_has_output(qp_engine(qp)) && !is_held(qp) && qp_has_room(qp, link) &&
           qp_door_transmit(qp, &packet, pieces, now))
        if (!send_packet(qp, link, &packet))
            qp_door_unreadable(qp, &packet);
    traffic_end_batch(qp_flow(qp), link);
}

/* Writes the headers of a datagram for InfiniBand: LRH, GRH if the path has one, and the packet's. */
static void write_local_headers(const struct ah *ah, const struct device *device, const struct packet *packet,
                                struct frame *frame)
{
    struct lrh lrh = {ah->attr.dlid, device->lid, ah->attr.sl, ah->attr.is_global};
    uint8_t *headers = (uint8_t *)frame->headers, *grh = headers + LRH_LENGTH;
    frame->kind = lrh.global ? FRAME_LRH_GRH : FRAME_LRH;
    unsigned outer = frame_outer_length(frame->kind), length = wire_encode(packet, headers + outer);
    uint32_t behind = length + ((packet->payload.length + 3) & ~3u) + DATAGRAM_ICRC;
    if (lrh.global) {
        memcpy(grh, ah->grh, GRH_LENGTH);
        lrh_make_grh(grh, behind);
    }
    lrh_write(headers, &lrh, outer - LRH_LENGTH + behind);
    frame->headers_length = (uint16_t)(outer + length);
}

/* Writes the GRH as the receiver sees it, with this datagram's length, and the packet's headers. */
static void write_headers(const struct ah *ah, const struct packet *packet, struct frame *frame)
{
    enum { UDP = 8 };
    uint8_t *headers = (uint8_t *)frame->headers;
    memcpy(headers, ah->grh, GRH_LENGTH);
    unsigned length = wire_encode(packet, headers + GRH_LENGTH);
    grh_set_length(headers, UDP + length + ((packet->payload.length + 3) & ~3u) + DATAGRAM_ICRC);
    frame->headers_length = (uint16_t)(GRH_LENGTH + length);
}

/* Sends a multicast to the members on this host. `link` leads to members on other hosts; or NULL. */
static bool send_to_group(struct qp *qp, const struct ah *ah, const struct link *link, const struct frame *frame,
                          uint32_t psn)
{
    unsigned members;
    union ibv_gid group = ah->attr.grh.dgid;
    bool read = multicast_send(qp, group.raw, frame, &members);
    if (!members && !link && !node_is_lost(qp->process->node))
        lost_in_group(qp, &group, psn);
    return read;
}

/* Loses the next datagram of the engine, if it has one, as no link leads to its receiver. */
cold static void lose_datagram(struct qp *qp, const struct ah *ah, uint32_t number, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    if (qp_door_transmit(qp, &packet, pieces, now) && ah->local && !qp_port_is_down(qp))
        lost_to_nobody(qp, number, packet.psn);
}

/* Puts the next datagram of the engine into the link, if it has one; a multicast is also sent to the members on this
 * host. */
static void transmit_to(struct qp *qp, const struct ah *ah, struct peer *peer, struct link *link, nanos now)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t headers[FRAME_HEADERS_MAX];
    struct frame frame = {.kind = FRAME_GRH, .headers = headers};
    bool multicast = ah->multicast && !qp_port_is_down(qp);
    if (!qp_door_transmit(qp, &packet, pieces, now) || (!link && !multicast))
        return;
    if (unlikely(ah->infiniband))
        write_local_headers(ah, qp->object.context->device, &packet, &frame);
    else
        write_headers(ah, &packet, &frame);
    frame.payload = packet.payload;
    if (qp_is_watched(qp))
        rate_limit_count(qp, frame.headers_length + packet.payload.length);
    bool read = !multicast || send_to_group(qp, ah, link, &frame, packet.psn);
    if (link)
        read &= traffic_send(qp_flow(qp), peer, link, &frame);
    if (!read)
        qp_door_unreadable(qp, &packet);
}

/* Sends one datagram; false when its link has no room and the queue pair waits for some. */
static bool transmit_datagram(struct qp *qp, const struct send_wqe *work, nanos now)
{
    struct node *node = qp->process->node;
    const struct ah *ah = work->address;
    bool up = !qp_port_is_down(qp);
    if (up && ah->multicast && !multicast_has_room(qp, ah->attr.grh.dgid.raw))
        return false;
    struct peer *peer = up && ah->local && !ah->multicast ? node_find(node, work->remote_qp) : NULL;
    struct link *link = peer ? peer->link : up ? ah->remote : NULL;
    if (!link) {
        if (ah->multicast)
            transmit_to(qp, ah, NULL, NULL, now);
        else
            lose_datagram(qp, ah, work->remote_qp, now);
        return true;
    }
    link->operations->begin(link);
    bool room = qp_has_room(qp, link);
    if (room)
        transmit_to(qp, ah, peer, link, now);
    traffic_end_batch(qp_flow(qp), link);
    if (peer)
        node_put(node, peer);
    return room;
}

void qp_transmit_datagrams(struct qp *qp, nanos now)
{
    const struct send_wqe *work;
    while ((work = qp_door_next_datagram(qp)) && !is_held(qp) && transmit_datagram(qp, work, now))
        ;
    if (!work)
        multicast_forget(qp);
}

/* Returns true for a queue pair inside the host without a rate; others, and those without a peer, take the long way. */
static inline bool responds_plainly(const struct qp *qp)
{
    const struct peer *peer = qp->path.peer;
    return qp->traits & QP_END_TO_END && peer && !peer->gone && !qp->path.remote && !qp_is_watched(qp) &&
           !qp_port_is_down(qp) && !qp->process->forked && !tags_have_work(&qp_tags(qp)->port);
}

static inline void send_ack(struct qp *qp, struct link *link)
{
    struct packet packet;
    uint8_t headers[WIRE_HEADERS_MAX];
    engine_transmit_ack(qp_engine(qp), SERVICE_RC, &packet);
    const struct frame frame = {
        .kind = FRAME_ROCE, .headers_length = (uint16_t)wire_encode(&packet, headers), .headers = headers};
    traffic_send(qp_flow(qp), qp->path.peer, link, &frame);
}

/* Flattened: the fields of the packet are written straight into its headers, most of it as constants. */
__attribute__((flatten)) bool qp_acknowledge(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (!responds_plainly(qp) || !engine_owes_one_ack(qp_engine(qp)))
        return false;
    struct link *link = qp->path.peer->link;
    bool room = link->operations->begin(link) || link->operations->ready(link);
    if (likely(room))
        send_ack(qp, link);
    traffic_end_batch(qp_flow(qp), link);
    return room;
}

/* Sends no new message by reference while only the helper transmits: the peer could not copy memory that only a driver
 * copies. False: this thread may not transmit. */
cold static bool transmit_restrained(struct qp *qp)
{
    struct engine_settings settings = *engine_settings_of(qp_engine(qp));
    bool moves = restraints_permit(qp->process);
    if (!moves && !qp->process->forked)
        qp_leave_to_helper(qp);
    if (moves && qp_is_reliable(qp) && !settings.in_pieces) {
        settings.in_pieces = true;
        qp_door_configure(qp, &settings);
    }
    return moves;
}

void qp_transmit_guarded(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    if (unlikely(qp->process->poller.restraints) && !transmit_restrained(qp))
        return;
    if (unlikely(qp_is_watched(qp)))
        qp->rate_limit.wake = NANOS_NEVER;
    if (likely((qp->traits & (QP_RELIABLE | QP_ADDRESSED)) == QP_RELIABLE)) {
        transmit_rc(qp, now);
    } else {
        qp_flow(qp)->now = now;
        qp->kind->transmit(qp, now);
    }
}

void qp_transmit(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    bool opened = guard_begin(now);
    qp_transmit_guarded(qp, now);
    guard_end(opened);
}

void qp_settle(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    qp_end_lateness(qp);
    if (qp_is_reliable(qp))
        qp_door_acknowledge_late(qp);
    if (qp_is_reliable(qp) && engine_owes_responses(qp_engine(qp)))
        qp_transmit(qp, clock_now());
}
