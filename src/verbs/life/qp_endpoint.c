#include "verbs/life/qp_endpoint.h"

#include "base/container.h"
#include "base/likely.h"
#include "process/forward.h"
#include "runtime/clock.h"
#include "tap/traffic.h"
#include "transport/engine/inlined.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/disturb/disturb.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/qp/qp_path.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/srq.h"
#include "verbs/send/transmit.h"

enum { POSTPONED_WITH_FAULTS = 8 };

/* Returns the known reason why the peer does not answer. */
static enum reason why_silent(const struct qp *qp)
{
    if (qp->path.peer_ended)
        return REASON_PEER_GONE;
    return qp->path.remote && atomic_load(&qp->path.remote->refused) ? REASON_NOT_SENT : REASON_NONE;
}

/* Returns true for a peer that lives and has not yet taken what was sent: it is slow, nothing is lost, and no retry
 * is spent, unless it lasts too long. If the user asked for faults, the frames that it has not taken may all be of
 * other queue pairs, so the timer must fire now and then. */
static bool is_only_slow(struct qp *qp, nanos now, enum reason *silence)
{
    struct peer *peer = qp->path.peer;
    if (peer && !node_alive(qp->process->node, peer) && !qp->path.peer_ended) {
        qp->path.peer_ended = true;
        traffic_note(qp_flow(qp), EVENT_PEER_ENDED, (uint64_t)peer->pid, 0);
    }
    *silence = why_silent(qp);
    if (traffic_is_faulty(&qp->process->traffic) && ++qp->progress.postponed % POSTPONED_WITH_FAULTS == 0)
        return false;
    if (!peer || peer->gone || engine_waits_for_receive(qp_engine(qp)) || peer->link->operations->consumed(peer->link))
        return false;
    enum node_presence presence = node_insist(qp->process->node, peer, now);
    if (presence == NODE_STALLED)
        *silence = REASON_PEER_STALLED;
    return presence == NODE_SLOW;
}

/* Returns true if the failure is put off while the peer's process is asked why, for the line of the log. */
static bool is_asking(struct qp *qp, enum silent_peer peer, enum reason silence, nanos now)
{
    return peer == PEER_SILENT && !silence && engine_gives_up(qp_engine(qp), now) && qp_inquire_silence(qp, now);
}

static void expire_engine(struct qp *qp, nanos now)
{
    enum reason silence;
    enum silent_peer peer = is_only_slow(qp, now, &silence) ? PEER_SLOW
                            : qp_was_taken(qp)              ? PEER_TOOK_ALL
                                                            : PEER_SILENT;
    if (!is_asking(qp, peer, silence, now))
        qp_door_expire(qp, now, peer, silence);
}

/* Lets a refused request fail as soon as the cause is known; until then silence does not count. */
static void take_refusal(struct qp *qp, nanos now)
{
    struct packet refusal;
    if (qp_inquiry_take(qp, now, &refusal))
        qp_receive(qp, &refusal, now);
}

static void expire(struct qp *qp, nanos now)
{
    bool silent = qp_is_reliable(qp) && engine_is_due(qp_engine(qp), now); /* the whole ACK timer has passed */
    if (qp_inquiry_is_of_refusal(qp))
        take_refusal(qp, now);
    else if (engine_deadline(qp_engine(qp)) <= now) /* otherwise a rate or a group lets it continue */
        expire_engine(qp, now);
    else if (qp_inquiry_waits(qp)) /* the peer has answered after all */
        qp_inquiry_end(qp);
    if (qp->path.remote && silent)
        udp_reroute(qp->path.remote);
    qp_transmit_guarded(qp, now);
}

static void qp_expired(struct timer *timer, nanos now)
{
    struct qp *qp = qp_of_endpoint(container_of(timer, struct endpoint, timer.timer));
    lock_take(&qp->lock);
    qp_flow(qp)->now = now;
    if (unlikely(qp_datapath(qp)->disturbance != NULL))
        qp_datapath(qp)->disturbance->expires(qp, now);
    if (qp_inquiry_deadline(qp, qp_deadline(qp)) <= now)
        expire(qp, now);
    qp_expire_by(qp, qp_inquiry_deadline(qp, qp_watch(qp)));
    lock_release(&qp->lock);
}

/* Returns true for a NAK, which gets the exact time: the short wait of an RNR NAK must not become milliseconds. */
static bool is_refusal(const struct packet *packet)
{
    return packet->syndrome >> 5; /* 0 is the class of ACKs, and is in packets without an AETH */
}

/* Looks whether references are lost, before the engine takes a NAK. Only where the other end of the link executes what
 * it takes: over XRC a third process may. */
static void look_at_references(struct qp *qp)
{
    struct engine_settings settings = *engine_settings_of(qp_engine(qp));
    struct peer *peer = qp->path.peer;
    settings.references_lost = qp->traits & QP_END_TO_END && peer && !peer->gone && engine_has_shipped(qp_engine(qp)) &&
                               traffic_has_lost_references(&qp->process->traffic, peer->link);
    qp_door_configure(qp, &settings);
}

/* Drops a refused packet. A datagram is refused for its GRH first, which no packet of a connection within the host has;
 * the log then names its service. */
cold static bool drop_refused(struct qp *qp, const struct packet *packet, enum reason refusal)
{
    bool datagram = op_service(packet->opcode) == SERVICE_UD && !(qp->traits & QP_DATAGRAM);
    if (datagram && refusal == REASON_PACKET_SOURCE)
        refusal = REASON_PACKET_SERVICE;
    qp_owner(qp)->operations->dropped(qp_owner(qp), packet, refusal);
    return !qp->progress.refused;
}

/* Takes a packet, under qp->lock. True: it was expected. Inlined, so that `next` is called directly. */
__attribute__((always_inline)) static inline bool take(struct qp *qp, const struct packet *packet,
                                                       const struct endpoint_arrival *arrival, take_packet *next)
{
    nanos now = arrival->now;
    qp_flow(qp)->now = now;
    traffic_received(qp_flow(qp), packet, arrival->from.route);
    if (unlikely(is_refusal(packet))) {
        look_at_references(qp);
        now = clock_now();
    }
    enum reason refusal = qp_path_refusal(qp, packet, arrival->from.interface);
    qp->progress.refused = false;
    if (unlikely(refusal != REASON_NONE))
        return drop_refused(qp, packet, refusal);
    if (unlikely(arrival->from.congested))
        qp_path_notify(qp, arrival->now);
    if (arrival->along && qp->traits & QP_END_TO_END && !qp->path.remote)
        qp_door_receive_along(qp, arrival->along, now);
    if (unlikely(is_refusal(packet)) && qp_inquire_refusal(qp, packet, now)) {
        qp_expire_by(qp, qp_inquiry_deadline(qp, now));
        return true;
    }
    struct packet room;
    if (unlikely(qp_datapath(qp)->disturbance != NULL)) {
        qp_flow(qp)->now = clock_now(); /* the round's time is milliseconds off, and delays are shorter */
        packet = qp_datapath(qp)->disturbance->arrives(qp, packet, &room);
    }
    next(qp, packet, now);
    return !qp->progress.refused;
}

cold static bool tell_cut_off(const struct qp *qp)
{
    traffic_dropped(&qp->process->traffic, REASON_PACKET_PORT_DOWN, "qp 0x%x", qp->number);
    return true;
}

static inline bool is_cut_off(const struct qp *qp)
{
    return unlikely(qp_port_is_down(qp)) && tell_cut_off(qp);
}

/* Returns true if the packet needs nothing that `take` does, except the counting. */
static inline bool is_usual(const struct qp *qp, const struct endpoint_arrival *arrival)
{
    const struct packet *packet = arrival->from.packet;
    return arrival->plain && qp->traits & QP_END_TO_END && !qp->path.remote &&
           op_service(packet->opcode) == SERVICE_RC && !is_refusal(packet) && !traffic_taps(qp_flow(qp)->traffic);
}

static inline enum endpoint_output output_of(const struct qp *qp)
{
    if (qp_may_have_output(qp))
        return ENDPOINT_OUTPUT;
    return qp_is_reliable(qp) && engine_owes_late(qp_engine(qp)) ? ENDPOINT_LATE : ENDPOINT_NOTHING;
}

/* Takes a usual packet, in which only the two queue pairs take part, and gives the lock back. */
static inline enum endpoint_output receive_at_qp_fast(struct qp *qp, const struct endpoint_arrival *arrival)
{
    qp_flow(qp)->now = arrival->now;
    traffic_received(qp_flow(qp), arrival->from.packet, NULL);
    if (unlikely(arrival->along))
        engine_receive_along(qp_engine(qp), arrival->along, arrival->now);
    engine_receive_reliable(qp_engine(qp), arrival->from.packet, arrival->now);
    enum endpoint_output output = output_of(qp);
    lock_release(&qp->lock);
    return output;
}

cold static enum endpoint_output receive_at_qp_slow(struct qp *qp, const struct endpoint_arrival *arrival)
{
    const struct packet *packet = arrival->from.packet;
    bool fine = take(qp, packet, arrival, qp_receive);
    enum endpoint_output output = output_of(qp);
    lock_release(&qp->lock);
    if (arrival->forwarded && fine) /* a forged source may not change the way */
        forward_prefer(qp->process, arrival->forwarded, packet);
    return output;
}

/* Flattened: a usual request or ACK passes the engine without calls, except to its owner. */
__attribute__((flatten)) static enum endpoint_output receive_at_qp(struct endpoint *endpoint,
                                                                   const struct endpoint_arrival *arrival)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    if (is_cut_off(qp))
        return ENDPOINT_NOTHING;
    lock_take(&qp->lock);
    return likely(is_usual(qp, arrival)) ? receive_at_qp_fast(qp, arrival) : receive_at_qp_slow(qp, arrival);
}

bool qp_endpoint_take(struct qp *qp, const struct endpoint_arrival *arrival, take_packet *next)
{
    lock_assert_held(&qp->lock);
    return !is_cut_off(qp) && take(qp, arrival->from.packet, arrival, next);
}

/* An ACK to another host may wait for one round: it costs a system call, unless it is sent along. */
bool qp_endpoint_flush(struct endpoint *endpoint, nanos now, bool ack_later)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    if (qp_is_reliable(qp))
        qp_door_acknowledge_late(qp);
    bool waits = ack_later && qp->path.remote && !qp->progress.waited && qp_is_reliable(qp) &&
                 engine_owes_but_an_ack(qp_engine(qp));
    if (!waits && !qp_acknowledge(qp) && qp_may_have_output(qp))
        qp_transmit_guarded(qp, now);
    lock_release(&qp->lock);
    qp->progress.waited = waits;
    return !waits;
}

static bool is_overrun(const struct cq *cq)
{
    return cq && cq->told.overrun;
}

void qp_endpoint_fail_overrun(struct endpoint *endpoint)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    if (is_overrun(qp->uses.send_cq) || is_overrun(qp->uses.receive_cq) ||
        (qp->xrc.selected && is_overrun(qp->xrc.selected->cq))) {
        qp_inquiry_settle(qp);
        bool fails = qp_story_fails(qp, REASON_CQ_OVERRUN, 0);
        qp_fail(qp, IBV_EVENT_QP_FATAL);
        if (fails)
            qp_story_keep(qp);
    }
    lock_release(&qp->lock);
}

const struct endpoint_operations qp_endpoint_operations = {
    .receive = receive_at_qp,
    .flush = qp_endpoint_flush,
    .fail_overrun = qp_endpoint_fail_overrun,
};

void qp_begin_endpoint(struct qp *qp, const struct device *device)
{
    qp_endpoint(qp)->operations = qp->kind->endpoint;
    qp_flow(qp)->service = qp->kind->service;
    qp_flow(qp)->traffic = &qp->process->traffic;
    qp_flow(qp)->lock = &qp->lock;
    qp_flow(qp)->device = device;
    qp_flow(qp)->attr = &qp->attr;
    qp_flow(qp)->number = qp->number; /* the number of a substitute; others get their number later */
    traffic_begin(qp_flow(qp));
    qp_disturb(qp);
    schedule_initialize_timer(&qp_endpoint(qp)->timer, qp_expired);
}
