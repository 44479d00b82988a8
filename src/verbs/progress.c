#include "verbs/progress.h"

#include "base/container.h"
#include "diag/log.h"
#include "link/fence.h"
#include "link/guard.h"
#include "runtime/clock.h"
#include "verbs/cm.h"
#include "verbs/event.h"
#include "verbs/gid.h"
#include "verbs/gsi.h"
#include "verbs/numbers.h"
#include "verbs/port.h"
#include "verbs/qp.h"
#include "verbs/remote.h"
#include "verbs/steering.h"
#include "verbs/taps.h"
#include "verbs/traffic.h"
#include "wire/wire.h"

enum { FRAMES_A_ROUND = 64, GRH_LENGTH = 40, MULTICAST_QP = 0xffffff };

struct round {
    struct process *process;
    nanos now;                          /* 0: nothing to do yet */
    bool opened;                        /* what guard_begin said, once a round has something to do */
    bool congested;                     /* a router marked the packet in hand */
    unsigned interface;                 /* of the network that it came from, directly or passed on; 0: this host */
    const uint8_t *passed_on;           /* then the first bytes of its frame; NULL: it was not */
    const struct datagram_route *route; /* of the packet in hand; NULL: it is from this host */
};

static void want_flush(struct process *process, struct qp *qp)
{
    if (qp->to_flush)
        return;
    qp->to_flush = true;
    TAILQ_INSERT_TAIL(&process->to_flush, qp, flush);
}

/* A NAK: the wait that an RNR NAK asks for is short and must not become milliseconds. */
static bool is_refusal(const struct packet *packet)
{
    return packet->syndrome >> 5; /* 0 is the class of ACKs, and of packets that have no AETH */
}

static void deliver(struct round *round, struct qp *qp, const struct packet *packet)
{
    if (qp_port_is_down(qp)) {
        log_reason(LOG_INFO, REASON_PACKET_PORT_DOWN, "qp 0x%x", qp->number);
        return;
    }
    lock_take(&qp->lock);
    traffic_received(qp, packet, round->route);
    enum reason refusal = remote_refusal(qp, packet, round->interface);
    qp->refused = false;
    if (!refusal) {
        if (round->congested)
            remote_notify(qp, round->now);
        qp_receive(qp, packet, is_refusal(packet) ? clock_now() : round->now);
    } else
        qp->host.operations->dropped(&qp->host, packet, refusal);
    bool output = qp_has_output(qp), fine = !qp->refused;
    lock_release(&qp->lock);
    if (output)
        want_flush(round->process, qp);
    if (round->passed_on && fine) /* not for anybody who makes up a source */
        remote_prefer(round->process, round->passed_on, packet);
}

static void deliver_to_group(struct round *round, const struct packet *packet)
{
    struct group *group;
    union ibv_gid source, destination;
    bool joined = false;
    if (!packet->grh) {
        traffic_stray(round->process, packet, round->route, REASON_PACKET_NOT_JOINED);
        return;
    }
    gid_from_grh(packet->grh, &source, &destination);
    LIST_FOREACH (group, &round->process->groups, siblings)
        if (!memcmp(&group->gid, &destination, sizeof destination)) {
            deliver(round, group->qp, packet);
            joined = true;
        }
    if (!joined) {
        traffic_stray(round->process, packet, round->route, REASON_PACKET_NOT_JOINED);
        log_reason(LOG_INFO, REASON_PACKET_NOT_JOINED, "psn %u from qp 0x%x", packet->psn, packet->source);
    }
}

static const enum reason wire_reasons[] = {
    [WIRE_TRUNCATED] = REASON_PACKET_TRUNCATED, [WIRE_VERSION] = REASON_PACKET_VERSION,
    [WIRE_OPCODE] = REASON_PACKET_OPCODE,       [WIRE_PAD] = REASON_PACKET_PAD,
    [WIRE_UNEXPECTED] = REASON_PACKET_PAYLOAD,  [WIRE_ICRC] = REASON_PACKET_ICRC,
};

/* Headers of a frame into a packet; otherwise why it is dropped. */
static enum wire_fault decode(const struct frame *frame, struct packet *packet)
{
    const uint8_t *headers = frame->headers + (frame->kind == FRAME_PASSED_ON ? REMOTE_ARRIVAL : 0);
    size_t length = frame->headers_length - (size_t)(headers - frame->headers);
    unsigned used, pad;
    bool grh = frame->kind != FRAME_ROCE && length >= GRH_LENGTH;
    enum wire_fault fault =
        wire_decode(headers + (grh ? GRH_LENGTH : 0), length - (grh ? GRH_LENGTH : 0), packet, &used, &pad);
    if (!fault)
        fault = wire_check_payload(packet, frame->payload.length);
    if (fault) {
        log_reason(LOG_WARN, wire_reasons[fault], "frame of %zu header bytes", length);
        return fault;
    }
    packet->payload = frame->payload;
    packet->grh = grh ? headers : NULL;
    return WIRE_FINE;
}

/* The first thing that there is to do in this round. */
static inline void begin_progress(struct round *round)
{
    if (round->now)
        return;
    struct process *process = round->process;
    round->now = clock_about_now();
    round->opened = guard_begin(round->now);
    uint32_t before = atomic_load_explicit(&process->delivering, memory_order_relaxed);
    atomic_store_explicit(&process->delivering, before + 1, memory_order_relaxed);
}

/* What it brought may be told now. */
static void end(const struct round *round)
{
    struct process *process = round->process;
    uint32_t this = atomic_load_explicit(&process->delivering, memory_order_relaxed);
    atomic_store_explicit(&process->answered, this, memory_order_release);
    guard_end(round->opened);
}

/* False: nobody here has that number. */
static bool take_packet(struct round *round, const struct packet *packet)
{
    begin_progress(round);
    if (packet->destination == MULTICAST_QP) {
        deliver_to_group(round, packet);
        return true;
    }
    struct qp *qp = numbers_find(round->process->numbers, packet->destination);
    if (qp)
        deliver(round, qp, packet);
    return qp;
}

static void take_datagram(void *context, const struct udp_arrival *arrival)
{
    struct round *round = context;
    const struct packet *packet = arrival->packet;
    round->congested = arrival->congested;
    round->route = arrival->route;
    round->interface = arrival->interface;
    round->passed_on = NULL;
    if (take_packet(round, packet))
        ;
    else if (packet->destination == MAD_QP)
        gsi_receive(round->process, arrival, NULL);
    else if (!remote_pass_on(round->process, arrival, packet->destination)) {
        traffic_stray(round->process, packet, round->route, REASON_PACKET_NO_QP);
        log_reason(LOG_INFO, REASON_PACKET_NO_QP, "qp 0x%x from the network", packet->destination);
    }
    round->route = NULL;
    round->interface = 0;
}

static void drop_datagram(void *context, const struct udp_refusal *refusal)
{
    struct process *process = ((struct round *)context)->process;
    traffic_unread(process, wire_reasons[refusal->fault]);
    if (process->taps)
        taps_refused(process, refusal);
    log_reason(LOG_WARN, wire_reasons[refusal->fault], "datagram from port %u", refusal->route->source_port);
}

static void take_frame(void *context, struct peer *peer, const struct frame *frame)
{
    struct round *round = context;
    struct packet packet;
    if (frame->kind == FRAME_ETHERNET) {
        begin_progress(round);
        traffic_received_frame(round->process, frame);
        return steering_receive(round->process, frame);
    }
    if (frame->kind == FRAME_PASSED_ON && frame->headers_length < REMOTE_ARRIVAL + GRH_LENGTH)
        return;
    enum wire_fault fault = decode(frame, &packet);
    if (fault)
        return traffic_unread(round->process, wire_reasons[fault]);
    round->passed_on = frame->kind == FRAME_PASSED_ON ? frame->headers : NULL;
    round->interface = round->passed_on ? remote_interface(round->passed_on) : 0;
    if (take_packet(round, &packet))
        return;
    if (packet.destination == MAD_QP && round->passed_on)
        gsi_receive(round->process, &(struct udp_arrival){.packet = &packet, .interface = round->interface},
                    round->passed_on);
    else if (packet.destination == MAD_QP)
        cm_receive(round->process, peer, &packet);
    else {
        traffic_stray(round->process, &packet, NULL, REASON_PACKET_NO_QP);
        log_reason(LOG_INFO, REASON_PACKET_NO_QP, "qp 0x%x from process %d", packet.destination, (int)peer->pid);
    }
}

/* Lets the queue pair transmit. False: it only owes an ACK to another host, which may wait for one round: it costs a
 * system call, unless it goes along. */
static bool flush_one(struct qp *qp, nanos now, bool ack_later)
{
    lock_take(&qp->lock);
    bool waits = ack_later && qp->remote && !qp->waited && qp_is_reliable(qp) && rc_owes_but_an_ack(&qp->rc);
    if (!waits && qp_has_output(qp))
        qp_transmit_guarded(qp, now);
    lock_release(&qp->lock);
    qp->waited = waits;
    return !waits;
}

static void progress_flush(struct process *process, nanos now, bool ack_later)
{
    struct qp *qp, *next;
    for (qp = TAILQ_FIRST(&process->to_flush); qp; qp = next) {
        next = TAILQ_NEXT(qp, flush);
        if (!flush_one(qp, now, ack_later))
            continue;
        TAILQ_REMOVE(&process->to_flush, qp, flush);
        qp->to_flush = false;
    }
}

/* ACKs may only wait while the helper, or a poller that promised to go on, is awake. Saying that some wait before
 * looking whether everybody sleeps pairs with those who go to sleep (process.c), who say so before they look for
 * waiting ACKs. */
static void flush_in_time(struct process *process, nanos now, bool ack_later)
{
    progress_flush(process, now, ack_later && !node_sleeping(process->node));
    bool owing = !TAILQ_EMPTY(&process->to_flush);
    if (!owing && !atomic_load_explicit(&process->owing, memory_order_relaxed))
        return;
    atomic_store(&process->owing, owing);
    fence_full();
    if (!owing || !node_sleeping(process->node))
        return;
    progress_flush(process, now, false);
    atomic_store(&process->owing, false);
}

/* Those that waited for room move to the list of those with output; who finds none again comes back by itself. */
static void retry_for_room(struct process *process)
{
    struct qp *qp;
    lock_take(&process->schedule.lock);
    while ((qp = TAILQ_FIRST(&process->no_room))) {
        TAILQ_REMOVE(&process->no_room, qp, room);
        qp->no_room = false;
        want_flush(process, qp);
    }
    atomic_store(&process->no_room_count, 0);
    lock_release(&process->schedule.lock);
}

static bool is_overrun(const struct cq *cq)
{
    return cq && cq->overrun;
}

static void fail_overrun(void *object, void *context)
{
    struct qp *qp = object;
    lock_take(&qp->lock);
    if (is_overrun(qp->send_cq) || is_overrun(qp->receive_cq) || (qp->selected && is_overrun(qp->selected->cq))) {
        if (!qp->first_error && qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_ERR)
            qp->first_error = REASON_CQ_OVERRUN;
        qp_fail(qp, IBV_EVENT_QP_FATAL);
    }
    lock_release(&qp->lock);
}

unsigned progress_round(struct process *process, bool ack_later)
{
    lock_assert_held(&process->progress);
    struct round round = {.process = process};
    unsigned done = node_receive(process->node, take_frame, &round, FRAMES_A_ROUND);
    if (atomic_load_explicit(&process->port_count, memory_order_relaxed))
        done += port_receive(process, take_datagram, drop_datagram, &round);
    if (atomic_load_explicit(&process->no_room_count, memory_order_relaxed))
        retry_for_room(process);
    if (!TAILQ_EMPTY(&process->to_flush) || atomic_load_explicit(&process->owing, memory_order_relaxed)) {
        begin_progress(&round);
        flush_in_time(process, round.now, ack_later);
    }
    if (__builtin_expect(atomic_load_explicit(&process->overrun, memory_order_relaxed), 0)) {
        atomic_store(&process->overrun, false);
        numbers_each(process->numbers, fail_overrun, NULL);
    }
    if (round.now)
        end(&round);
    return done;
}

/* Who waits for room waits without a deadline, and a receiver that died makes none: so it is asked after now and then.
 * Once it is known to be gone, packets go nowhere and the engines' own timers do the rest. */
static void look_after_receivers(struct timer *timer, nanos now)
{
    struct process *process = container_of(timer, struct process, liveness.timer);
    if (!atomic_load(&process->no_room_count))
        return;
    node_check_peers(process->node, now);
    retry_for_room(process);
    progress_flush(process, now, false);
    schedule_by(&process->schedule, &process->liveness, now + PROGRESS_LIVENESS);
}

static void tell_of_departures(struct process *process, nanos now)
{
    unsigned departures = node_departures(process->node);
    struct schedule_timer *departed = atomic_load(&process->departed);
    if (departures == process->departures)
        return;
    process->departures = departures;
    if (departed)
        schedule_by(&process->schedule, departed, now);
}

void progress_begin(struct process *process, void (*wake_up)(struct schedule *))
{
    TAILQ_INIT(&process->to_flush);
    TAILQ_INIT(&process->no_room);
    schedule_initialize(&process->schedule, wake_up);
    schedule_initialize_timer(&process->liveness, look_after_receivers);
}

nanos progress_timers(struct process *process, nanos now)
{
    lock_assert_held(&process->progress);
    bool opened = guard_begin(now);
    tell_of_departures(process, now);
    nanos earliest = schedule_expire(&process->schedule, now);
    guard_end(opened);
    return earliest;
}

void progress_settle(struct process *process)
{
    lock_assert_held(&process->progress);
    nanos now = clock_now();
    bool opened = guard_begin(now);
    progress_flush(process, now, false);
    guard_end(opened);
    atomic_store(&process->owing, false);
}

void progress_forget(struct qp *qp)
{
    lock_assert_held(&qp->process->progress);
    struct process *process = qp->process;
    lock_assert_held(&process->progress);
    if (qp->to_flush)
        TAILQ_REMOVE(&process->to_flush, qp, flush);
    lock_take(&process->schedule.lock);
    if (qp->no_room)
        TAILQ_REMOVE(&process->no_room, qp, room);
    lock_release(&process->schedule.lock);
    qp->to_flush = qp->no_room = false;
    schedule_cancel(&process->schedule, &qp->timer);
}
