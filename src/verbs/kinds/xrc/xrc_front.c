#include "verbs/kinds/xrc/xrc_front.h"

#include <stdlib.h>

#include "diag/log.h"
#include "runtime/qpns.h"
#include "transport/pkey.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/kinds/xrc/xrc_front_state.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/send/room.h"
#include "verbs/send/transmit.h"
#include "wire/bytes.h"
#include "wire/psn.h"
#include "wire/wire.h"

enum { RESPONDED = OP_READ | OP_FLUSH | OP_ATOMIC | OP_ATOMIC_WRITE };

static void take_back(struct qp *qp)
{
    log_reason(LOG_INFO, REASON_XRC_SUBSTITUTE_GONE, "qp 0x%x process %d", qp->number, (int)qp->xrc.front->holder->pid);
    xrc_front_forget_holder(qp);
    if (engine_is_receiving(qp_engine(qp)) && !engine_has_failed(qp_engine(qp)))
        qp_door_reclaim(qp);
}

/* Finds the process that has the SRQ, with a reference; NULL: this process has it, or no process does. */
static struct peer *find_owner(struct qp *qp, uint32_t srq)
{
    struct node *node = qp->process->node;
    struct peer *peer = qpns_find(process_objects(qp->process)->srqs, srq) ? NULL : node_find(node, srq);
    if (!peer || (peer->slot != node_slot(node) && node_alive(node, peer)))
        return peer;
    node_put(node, peer);
    return NULL;
}

/* Sends the packet to the process. False: the link has no room. */
static bool forward_packet(struct qp *qp, struct peer *peer, const struct packet *packet)
{
    uint8_t headers[FRAME_HEADERS_MAX];
    struct link *link = peer->link;
    struct frame frame = {
        .kind = packet->way ? FRAME_CAPTURED : FRAME_ROCE, .headers = headers, .payload = packet->payload};
    unsigned outer = frame_outer_length(frame.kind);
    bytes_put32(headers, packet->way);
    frame.headers_length = (uint16_t)(outer + wire_encode(packet, headers + outer));
    if (packet->payload.length > LINK_SEGMENT)
        return true; /* from a peer that sends references, which can't be passed on */
    link->operations->begin(link);
    bool room = qp_has_room(qp, link);
    if (room)
        link->operations->send(link, &frame);
    link->operations->end(link);
    return room;
}

/* Passes the packet to the holder of the position. False: the packet must wait. */
static bool deliver(struct qp *qp, const struct packet *packet, nanos now)
{
    struct xrc_front *front = qp->xrc.front;
    if (!front->holder) {
        qp_receive(qp, packet, now);
        return true;
    }
    bool passed = forward_packet(qp, front->holder, packet);
    front->kept &= !passed;
    return passed;
}

/* Returns true for a READ or atomic whose response has left: its executor sends the response again, without the
 * position. */
static bool is_retransmitted(const struct qp *qp, const struct packet *packet)
{
    return op_find(packet->opcode)->flags & RESPONDED &&
           psn_distance(packet->psn, engine_expected_psn(qp_engine(qp))) < 0;
}

/* Returns true for a packet that needs no memory of the SRQ: it is out of sequence, or a message is under way here. */
static bool may_stay(const struct engine *engine, const struct packet *packet)
{
    return packet->psn != engine_expected_psn(engine) || engine_is_within_message(engine);
}

static bool send_position(struct qp *qp, struct peer *to)
{
    const struct engine_settings *settings = engine_settings_of(qp_engine(qp));
    struct engine_position position = qp_door_lend(qp);
    struct xrc_control lend = xrc_front_message(qp, XRC_LEND);
    lend.turn++;
    lend.expected_psn = position.expected_psn;
    lend.msn = position.msn;
    lend.nak_sent = position.nak_sent;
    lend.segment = settings->segment;
    lend.exact = settings->exact;
    lend.access = settings->access;
    lend.min_rnr_timer = settings->min_rnr_timer;
    lend.max_dest_rd_atomic = settings->max_dest_rd_atomic;
    xrcd_key(qp->xrc.domain, &lend.domain);
    return xrc_control_send(qp, to, &lend);
}

/* Lends the position to the process whose SRQ the packet names; the front takes its reference. False: the packet
 * waits. */
static bool lend(struct qp *qp, struct peer *owner, const struct packet *packet, nanos now)
{
    struct xrc_front *front = qp->xrc.front;
    struct engine *engine = qp_engine(qp);
    bool stays = may_stay(engine, packet);
    if (!stays && !engine_may_lend(engine))
        qp_transmit_guarded(qp, now);
    if (stays || !engine_may_lend(engine) || !xrc_front_enter_place(qp, owner)) {
        node_put(qp->process->node, owner);
        return stays && deliver(qp, packet, now);
    }
    if (!send_position(qp, owner))
        return false;
    front->holder = owner;
    front->srq = packet->srq;
    front->turn++;
    return deliver(qp, packet, now);
}

static bool recall(struct qp *qp)
{
    struct xrc_control recall = xrc_front_message(qp, XRC_RECALL);
    qp->xrc.front->recalled = xrc_control_send(qp, qp->xrc.front->holder, &recall);
    return false;
}

/* Lets the process that has the SRQ send its response again. False: the link has no room. */
static bool retransmit(struct qp *qp, const struct packet *packet, nanos now)
{
    struct peer *owner = find_owner(qp, packet->srq);
    if (!owner) {
        qp_receive(qp, packet, now);
        return true;
    }
    bool passed = forward_packet(qp, owner, packet);
    node_put(qp->process->node, owner);
    return passed;
}

/* Passes the packet to the process that executes it. False: it must wait for room, or for the position. */
static bool route(struct qp *qp, const struct packet *packet, nanos now)
{
    struct xrc_front *front = qp->xrc.front;
    if (front->holder && front->holder->gone)
        take_back(qp);
    if (is_retransmitted(qp, packet))
        return retransmit(qp, packet, now);
    if (front->recalled)
        return false;
    bool ended = !front->holder && (engine_has_failed(qp_engine(qp)) || !engine_is_receiving(qp_engine(qp)));
    if (ended || !(op_find(packet->opcode)->flags & OP_START) || front->kept || packet->srq == front->srq)
        return deliver(qp, packet, now);
    struct peer *owner = find_owner(qp, packet->srq);
    if (owner && owner != front->holder)
        return front->holder ? node_put(qp->process->node, owner), recall(qp) : lend(qp, owner, packet, now);
    if (owner)
        node_put(qp->process->node, owner);
    if (front->holder && !owner)
        return recall(qp);
    front->srq = packet->srq;
    return deliver(qp, packet, now);
}

static bool names_an_srq(const struct qp *qp, const struct packet *packet)
{
    const struct engine *engine = qp_engine(qp);
    return op_service(packet->opcode) == SERVICE_XRC && op_find(packet->opcode) && engine_is_receiving(engine) &&
           !engine_has_failed(engine) && !(op_find(packet->opcode)->flags & OP_RESPONSE) &&
           pkey_matches(packet->pkey, engine_settings_of(engine)->pkey);
}

void xrc_front_receive(struct qp *qp, const struct packet *packet, nanos now)
{
    lock_assert_held(&qp->lock);
    struct xrc_front *front = qp->xrc.front;
    struct xrcd_key key;
    if (!names_an_srq(qp, packet) || !xrcd_key(qp->xrc.domain, &key) ||
        (!front && qpns_find(process_objects(qp->process)->srqs, packet->srq)))
        return qp_receive(qp, packet, now);
    if (!front)
        front = xrc_front_make(qp);
    if (front && (!STAILQ_EMPTY(&front->requests) || !route(qp, packet, now)))
        xrc_front_keep(front, &front->requests, packet);
}

static void forward_response(struct qp *qp, const struct packet *response)
{
    struct xrc_front *front = qp->xrc.front;
    struct packet packet = *response;
    packet.destination = qp->attr.dest_qp_num;
    qp_door_hear_response(qp, response);
    if (!STAILQ_EMPTY(&front->responses) || !qp_send_packet(qp, &packet))
        xrc_front_keep(front, &front->responses, &packet);
}

static void fail_front(struct qp *qp, const struct peer *from, uint32_t event)
{
    bool fails = qp_story_fails(qp, REASON_XRC_SUBSTITUTE_FAILED, (int)from->pid);
    if (event)
        qp_fail(qp, (enum ibv_event_type)(event - 1));
    else if (qp->state != IBV_QPS_ERR)
        qp_flush(qp);
    if (fails)
        qp_story_keep(qp);
}

static void take_control(struct qp *qp, const struct peer *from, const struct xrc_control *message)
{
    struct engine_position position = {message->expected_psn, message->msn, message->nak_sent};
    switch (message->kind) {
    case XRC_RETURN:
        xrc_front_forget_holder(qp);
        return qp_door_take_over(qp, &position);
    case XRC_KEEP:
        qp->xrc.front->recalled = false;
        qp->xrc.front->kept = true;
        return;
    case XRC_FAILED:
        return fail_front(qp, from, message->event <= IBV_EVENT_GID_CHANGE + 1u ? message->event : 0);
    default:
        return;
    }
}

/* Returns true for a message of the present turn. A substitute of an earlier turn may fail, too, as it repeats a
 * response. */
static bool is_current(const struct xrc_front *front, const struct peer *from, const struct xrc_control *message)
{
    return message->kind == XRC_FAILED ? (int32_t)(message->turn - front->since) > 0
                                       : front->holder == from && message->turn == front->turn;
}

bool xrc_front_takes(struct qp *qp, const struct endpoint_arrival *arrival)
{
    lock_assert_held(&qp->lock);
    const struct xrc_front *front = qp->xrc.front;
    const struct packet *packet = arrival->from.packet;
    struct xrc_control message;
    bool known = front && arrival->peer && !arrival->forwarded && xrc_front_find_place(qp->xrc.front, arrival->peer);
    if (!packet) {
        if (known && xrc_control_read(arrival->frame, &message) && is_current(front, arrival->peer, &message))
            take_control(qp, arrival->peer, &message);
        return true;
    }
    bool response = op_service(packet->opcode) == SERVICE_XRC && op_find(packet->opcode) &&
                    op_find(packet->opcode)->flags & OP_RESPONSE;
    if (known && response)
        forward_response(qp, packet);
    return known && response;
}

bool xrc_front_waits(const struct qp *qp)
{
    const struct xrc_front *front = qp->xrc.front;
    return front && front->waiting;
}

static void flush_requests(struct qp *qp, nanos now)
{
    struct xrc_front *front = qp->xrc.front;
    struct xrc_packet *packet;
    while ((packet = STAILQ_FIRST(&front->requests))) {
        STAILQ_REMOVE_HEAD(&front->requests, next); /* the queue pair may fail meanwhile, which empties the list */
        if (!route(qp, &packet->packet, now)) {
            STAILQ_INSERT_HEAD(&front->requests, packet, next);
            return;
        }
        front->waiting--;
        free(packet);
    }
}

static bool flush_responses(struct qp *qp)
{
    struct xrc_front *front = qp->xrc.front;
    struct xrc_packet *packet;
    while ((packet = STAILQ_FIRST(&front->responses)) && qp_send_packet(qp, &packet->packet)) {
        STAILQ_REMOVE_HEAD(&front->responses, next);
        front->waiting--;
        free(packet);
    }
    return !packet;
}

void xrc_front_flush(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    if (!flush_responses(qp))
        return;
    flush_requests(qp, now);
    if (qp_has_output(qp))
        qp_transmit_guarded(qp, now);
}

/* Another thread may find at any moment that a process has gone, and notify this again. So the place of the process
 * that has the position stays until the position has been taken back: it owns the holder's reference. */
void xrc_front_departed(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    struct xrc_front *front = qp->xrc.front;
    bool lost = front && front->holder && front->holder->gone;
    if (lost)
        take_back(qp);
    for (struct xrc_place *place = front ? LIST_FIRST(&front->places) : NULL, *next; place; place = next) {
        next = LIST_NEXT(place, siblings);
        if (place->peer->gone && place->peer != front->holder)
            xrc_front_leave_place(qp, place);
    }
    if (lost)
        xrc_front_flush(qp, now);
}
