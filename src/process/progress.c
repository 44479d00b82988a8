#include "process/progress.h"

#include "base/container.h"
#include "base/likely.h"
#include "diag/log.h"
#include "link/fence.h"
#include "link/guard.h"
#include "process/forward.h"
#include "process/port.h"
#include "process/refusals.h"
#include "runtime/clock.h"
#include "runtime/qpns.h"
#include "tap/taps.h"
#include "tap/traffic.h"
#include "wire/bytes.h"
#include "wire/cm/mad.h"
#include "wire/foreign/foreign.h"
#include "wire/grh.h"
#include "wire/lrh.h"
#include "wire/op.h"
#include "wire/wire.h"

enum {
    LATE_ROUNDS = 64, /* for which an ACK that no peer asked for may wait */
    MULTICAST_QP = 0xffffff
};

struct round {
    struct process *process;
    nanos now;   /* 0: nothing to do yet */
    bool opened; /* the result of guard_begin, once a round has something to do */
};

static void want_flush(struct process *process, struct endpoint *endpoint)
{
    if (endpoint->to_flush)
        return;
    endpoint->to_flush = true;
    TAILQ_INSERT_TAIL(&process->loop.to_flush, endpoint, flush);
}

static void acknowledge_later(struct process *process, struct endpoint *endpoint)
{
    if (endpoint->late)
        return;
    endpoint->late = true;
    TAILQ_INSERT_TAIL(&process->loop.late, endpoint, wait);
}

void progress_deliver(struct process *process, struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    enum endpoint_output output = endpoint->operations->receive(endpoint, arrival);
    if (output == ENDPOINT_OUTPUT)
        want_flush(process, endpoint);
    else if (output == ENDPOINT_LATE)
        acknowledge_later(process, endpoint);
}

static const enum reason wire_reasons[] = {
    [WIRE_TRUNCATED] = REASON_PACKET_TRUNCATED, [WIRE_VERSION] = REASON_PACKET_VERSION,
    [WIRE_OPCODE] = REASON_PACKET_OPCODE,       [WIRE_PAD] = REASON_PACKET_PAD,
    [WIRE_UNEXPECTED] = REASON_PACKET_PAYLOAD,  [WIRE_ICRC] = REASON_PACKET_ICRC,
};

cold static enum wire_fault decode_captured(const struct frame *frame, struct packet *packet)
{
    unsigned used, pad;
    if (frame->headers_length < FRAME_WAY_LENGTH)
        return WIRE_TRUNCATED;
    enum wire_fault fault =
        wire_decode(frame->headers + FRAME_WAY_LENGTH, frame->headers_length - FRAME_WAY_LENGTH, packet, &used, &pad);
    packet->way = bytes_get32(frame->headers);
    return fault;
}

/* Decodes a frame that has other headers before the BTH. */
cold static enum wire_fault decode_behind(const struct frame *frame, struct packet *packet)
{
    if (frame->kind == FRAME_CAPTURED)
        return decode_captured(frame, packet);
    const uint8_t *headers = frame->headers + (frame->kind == FRAME_FORWARDED ? FORWARD_ARRIVAL : 0);
    bool local = frame->kind >= FRAME_LRH && frame->headers_length >= LRH_LENGTH;
    headers += local ? LRH_LENGTH : 0;
    size_t length = frame->headers_length - (size_t)(headers - frame->headers);
    unsigned used, pad;
    bool grh = frame->kind != FRAME_LRH && length >= GRH_LENGTH;
    enum wire_fault fault =
        wire_decode(headers + (grh ? GRH_LENGTH : 0), length - (grh ? GRH_LENGTH : 0), packet, &used, &pad);
    packet->lrh = local ? frame->headers : NULL;
    packet->grh = grh ? headers : NULL;
    return fault;
}

/* Decodes a frame that begins with the BTH. A fault says why the frame is dropped. */
static inline enum wire_fault decode(const struct frame *frame, struct packet *packet)
{
    unsigned used, pad;
    return wire_decode(frame->headers, frame->headers_length, packet, &used, &pad);
}

/* Begins the round when it finds the first thing to do. */
cold static void begin_round(struct round *round)
{
    struct process *process = round->process;
    round->now = clock_about_now();
    round->opened = guard_begin(round->now);
    uint32_t before = atomic_load_explicit(&process->loop.delivering, memory_order_relaxed);
    atomic_store_explicit(&process->loop.delivering, before + 1, memory_order_relaxed);
    wakeups_begin(process);
}

static inline void begin_progress(struct round *round)
{
    if (!round->now)
        begin_round(round);
}

/* Ends the round: the events that it brought may be reported now. */
static void end(const struct round *round)
{
    struct process *process = round->process;
    uint32_t this = atomic_load_explicit(&process->loop.delivering, memory_order_relaxed);
    atomic_store_explicit(&process->loop.responded, this, memory_order_release);
    wakeups_end(process);
    guard_end(round->opened);
}

static struct endpoint *find_common_endpoint(struct process *process, uint32_t number)
{
    return number == MULTICAST_QP ? &process->multicast : number == MAD_QP ? &process->mad : NULL;
}

/* Delivers the packet. False: no endpoint of this process has its number. */
static inline bool take_packet(struct round *round, struct endpoint_arrival *arrival)
{
    begin_progress(round);
    uint32_t number = arrival->from.packet->destination;
    struct endpoint *endpoint = qpns_find(round->process->numbers, number);
    if (unlikely(!endpoint) && !(endpoint = find_common_endpoint(round->process, number)))
        return false;
    arrival->now = round->now;
    progress_deliver(round->process, endpoint, arrival);
    return true;
}

/* Packets for a destroyed queue pair are usual. Packets for a number that was never given out show a mistake of the
 * peer's, and are not repeated if its timeout is 0. */
cold static void note_number(struct process *process, uint32_t number)
{
    if (log_wanted(LOG_WARN) && !log_shown(LOG_INFO) && qpns_is_strange(process->numbers, number))
        log_reason(LOG_WARN, REASON_PACKET_NO_QP, "qp 0x%x, a number that this process never gave a queue pair",
                   number);
}

/* Returns true if the sender's port stays the same: datagrams of a connection are from one port, others from any. */
static bool take_datagram(void *context, const struct udp_arrival *from)
{
    struct round *round = context;
    const struct packet *packet = from->packet;
    if (take_packet(round, &(struct endpoint_arrival){.from = *from}))
        return op_service(packet->opcode) != SERVICE_UD;
    if (forward_datagram(round->process, from, packet->destination))
        return false;
    traffic_stray(&round->process->traffic, packet, from->route, REASON_PACKET_NO_QP, "qp 0x%x from the network",
                  packet->destination);
    refusals_send_back(round->process, packet, from->interface, round->now);
    note_number(round->process, packet->destination);
    return false;
}

static void drop_datagram(void *context, const struct udp_refusal *refusal)
{
    struct process *process = ((struct round *)context)->process;
    traffic_dropped(&process->traffic, wire_reasons[refusal->fault], "datagram from port %u",
                    refusal->route->source_port);
    if (traffic_taps(&process->traffic))
        taps_refused(traffic_taps(&process->traffic), refusal);
}

/* Delivers a frame that holds no packet to the handler of its kind. */
static void take_other(struct round *round, struct peer *peer, const struct frame *frame)
{
    struct process *process = round->process;
    begin_progress(round);
    progress_deliver(process, frame->kind == FRAME_XRC ? &process->loop.xrc_control : &process->ethernet,
                     &(struct endpoint_arrival){.now = round->now, .peer = peer, .frame = frame});
}

/* Delivers the packet to the substitute of its receiver. False: there is no substitute here. */
static bool take_guest(struct round *round, struct endpoint_arrival *arrival)
{
    struct guest *guest;
    LIST_FOREACH (guest, &round->process->loop.guests, siblings)
        if (guest->number == arrival->from.packet->destination && guest->from == arrival->peer) {
            arrival->now = round->now;
            progress_deliver(round->process, guest->endpoint, arrival);
            return true;
        }
    return false;
}

cold static void drop_frame(struct process *process, const struct frame *frame, enum wire_fault fault)
{
    traffic_dropped(&process->traffic, wire_reasons[fault], "frame of %u header bytes", frame->headers_length);
}

/* Takes a packet for a number that no endpoint of this process has. */
cold static void take_packet_slow(struct round *round, struct endpoint_arrival *arrival)
{
    const struct packet *packet = arrival->from.packet;
    if (take_guest(round, arrival))
        return;
    traffic_stray(&round->process->traffic, packet, NULL, REASON_PACKET_NO_QP, "qp 0x%x from process %d",
                  packet->destination, (int)arrival->peer->pid);
    if (!arrival->forwarded)
        refusals_send(arrival->peer, packet);
    note_number(round->process, packet->destination);
}

/* Takes a decoded packet. If it came from the network by way of another process, `forwarded` is not NULL. */
__attribute__((always_inline)) static inline void take_decoded(struct round *round, struct peer *peer,
                                                               const struct frame *frame, struct packet *packet,
                                                               enum wire_fault fault, const uint8_t *forwarded)
{
    if (likely(!fault))
        fault = wire_check_payload(packet, frame->payload.length);
    if (unlikely(fault != WIRE_FINE))
        return drop_frame(round->process, frame, fault);
    packet->payload = frame->payload;
    bool plain = frame->kind == FRAME_ROCE;
    struct endpoint_arrival arrival = {
        .from.packet = packet, .peer = peer, .along = frame->along, .plain = plain, .forwarded = forwarded};
    if (forwarded)
        arrival.from.interface = forward_interface(forwarded);
    if (unlikely(!take_packet(round, &arrival)))
        take_packet_slow(round, &arrival);
}

cold static void take_frame_slow(struct round *round, struct peer *peer, const struct frame *frame)
{
    struct packet packet;
    bool forwarded = frame->kind == FRAME_FORWARDED;
    if (frame->kind == FRAME_ETHERNET || frame->kind == FRAME_XRC)
        return take_other(round, peer, frame);
    if (!forwarded || frame->headers_length >= FORWARD_ARRIVAL + GRH_LENGTH)
        take_decoded(round, peer, frame, &packet, decode_behind(frame, &packet), forwarded ? frame->headers : NULL);
}

/* Takes a datagram of this host. Flattened: decoding makes no call. A function of its own, so that packets of
 * connections save no registers for it. */
__attribute__((noinline, flatten)) static void take_frame_grh(struct round *round, struct peer *peer,
                                                              const struct frame *frame)
{
    struct packet packet;
    unsigned used, pad;
    if (unlikely(frame->headers_length < GRH_LENGTH))
        return drop_frame(round->process, frame, WIRE_TRUNCATED);
    enum wire_fault fault =
        wire_decode(frame->headers + GRH_LENGTH, frame->headers_length - GRH_LENGTH, &packet, &used, &pad);
    packet.grh = frame->headers;
    take_decoded(round, peer, frame, &packet, fault, NULL);
}

/* Flattened, as well. */
__attribute__((always_inline, flatten)) static inline void take_frame(void *context, struct peer *peer,
                                                                      const struct frame *frame)
{
    struct packet packet;
    if (likely(frame->kind == FRAME_ROCE))
        take_decoded(context, peer, frame, &packet, decode(frame, &packet), NULL);
    else if (frame->kind == FRAME_GRH)
        take_frame_grh(context, peer, frame);
    else
        take_frame_slow(context, peer, frame);
}

static void progress_flush(struct process *process, nanos now, bool ack_later)
{
    struct endpoint *endpoint, *next;
    for (endpoint = TAILQ_FIRST(&process->loop.to_flush); endpoint; endpoint = next) {
        next = TAILQ_NEXT(endpoint, flush);
        if (!endpoint->operations->flush(endpoint, now, ack_later))
            continue;
        TAILQ_REMOVE(&process->loop.to_flush, endpoint, flush);
        endpoint->to_flush = false;
    }
}

/* Lets the endpoints flush whose ACKs no peer asked for: they have waited for long enough. */
static void acknowledge_late(struct process *process)
{
    struct endpoint *endpoint;
    process->loop.late_rounds = 0;
    while ((endpoint = TAILQ_FIRST(&process->loop.late))) {
        TAILQ_REMOVE(&process->loop.late, endpoint, wait);
        endpoint->late = false;
        want_flush(process, endpoint);
    }
}

static void flush_some(struct process *process, nanos now, bool ack_later)
{
    if (!ack_later || (!TAILQ_EMPTY(&process->loop.late) && ++process->loop.late_rounds >= LATE_ROUNDS))
        acknowledge_late(process);
    progress_flush(process, now, ack_later);
}

/* ACKs may only wait while the helper, or a poller that promised to go on, is awake. This thread sets loop.owing and
 * then looks whether all threads sleep; a thread that falls asleep (helper.c) says so and then looks at loop.owing: one
 * of them sees the other. If an earlier round has set it, they have seen it, or will before they sleep. */
static void flush_in_time(struct process *process, nanos now, bool ack_later)
{
    flush_some(process, now, ack_later && !node_sleeping(process->node));
    bool owing = !TAILQ_EMPTY(&process->loop.to_flush) || !TAILQ_EMPTY(&process->loop.late);
    if (owing == atomic_load_explicit(&process->loop.owing, memory_order_relaxed))
        return;
    atomic_store(&process->loop.owing, owing);
    fence_full();
    if (!owing || !node_sleeping(process->node))
        return;
    flush_some(process, now, false);
    atomic_store(&process->loop.owing, false);
}

/* Moves endpoints that waited for room to the list of those with output; those without room wait again later. */
static void retry_for_room(struct process *process)
{
    struct endpoint *endpoint;
    lock_take(&process->schedule.lock);
    while ((endpoint = TAILQ_FIRST(&process->loop.no_room))) {
        TAILQ_REMOVE(&process->loop.no_room, endpoint, room);
        endpoint->no_room = false;
        want_flush(process, endpoint);
    }
    atomic_store(&process->loop.no_room_count, 0);
    lock_release(&process->schedule.lock);
}

static void fail_overrun(void *endpoint, void *context)
{
    ((struct endpoint *)endpoint)->operations->fail_overrun(endpoint);
}

void progress_guests(struct process *process, void (*visit)(void *endpoint, void *context), void *context)
{
    lock_assert_held(&process->progress);
    struct guest *guest;
    LIST_FOREACH (guest, &process->loop.guests, siblings) {
        visit(guest->endpoint, context);
        guest->endpoint->operations->flush(guest->endpoint, clock_now(), false);
    }
}

/* Returns true if a round would have nothing to do except for waiting ACKs. Datagrams are only found by a system call.
 */
static inline bool is_idle(const struct process *process)
{
    return node_is_quiet(process->node) && !atomic_load_explicit(&process->port_count, memory_order_relaxed) &&
           !atomic_load_explicit(&process->loop.no_room_count, memory_order_relaxed) &&
           TAILQ_EMPTY(&process->loop.to_flush) && !atomic_load_explicit(&process->loop.overrun, memory_order_relaxed);
}

cold static unsigned make_round(struct process *process, bool ack_later)
{
    struct round round = {.process = process};
    unsigned done = node_receive(process->node, take_frame, &round, PROGRESS_FRAMES);
    if (atomic_load_explicit(&process->port_count, memory_order_relaxed))
        done += port_receive(process, take_datagram, drop_datagram, &round);
    if (atomic_load_explicit(&process->loop.no_room_count, memory_order_relaxed))
        retry_for_room(process);
    if (!TAILQ_EMPTY(&process->loop.to_flush) || !TAILQ_EMPTY(&process->loop.late) ||
        atomic_load_explicit(&process->loop.owing, memory_order_relaxed)) {
        begin_progress(&round);
        flush_in_time(process, round.now, ack_later);
    }
    if (unlikely(atomic_load_explicit(&process->loop.overrun, memory_order_relaxed))) {
        atomic_store(&process->loop.overrun, false);
        qpns_each(process->numbers, fail_overrun, NULL);
        progress_guests(process, fail_overrun, NULL);
    }
    if (round.now)
        end(&round);
    return done;
}

/* Lets ACKs wait for another round, as they are all there is to do: a thread that falls asleep meanwhile sees that
 * they wait (loop.owing). */
cold static unsigned let_acks_wait(struct process *process, bool ack_later)
{
    bool wait = ack_later && !TAILQ_EMPTY(&process->loop.late) && ++process->loop.late_rounds < LATE_ROUNDS;
    return wait ? 0 : make_round(process, ack_later);
}

/* The look before saves an empty round the registers of a full one. */
unsigned progress_round(struct process *process, bool ack_later)
{
    lock_assert_held(&process->progress);
    if (!is_idle(process))
        return make_round(process, ack_later);
    bool owing = atomic_load_explicit(&process->loop.owing, memory_order_relaxed);
    return unlikely(owing) ? let_acks_wait(process, ack_later) : 0;
}

/* Senders waiting for ring space have no timeout, and a dead receiver never frees any: so the receivers are checked now
 * and then. Once a receiver is known to be gone, packets are lost and the engines' own timers do the rest. */
static void look_after_receivers(struct timer *timer, nanos now)
{
    struct process *process = container_of(timer, struct process, loop.liveness.timer);
    if (!atomic_load(&process->loop.no_room_count))
        return;
    node_check_peers(process->node, now);
    retry_for_room(process);
    progress_flush(process, now, false);
    schedule_by(&process->schedule, &process->loop.liveness, now + PROGRESS_LIVENESS);
}

static void tell_of_departures(struct process *process, nanos now)
{
    unsigned departures = node_departures(process->node);
    struct schedule_timer *departed = atomic_load(&process->loop.departed);
    if (departures == process->loop.departures)
        return;
    process->loop.departures = departures;
    process->parts->departed(process, now);
    if (departed)
        schedule_by(&process->schedule, departed, now);
}

void progress_begin(struct process *process, void (*wake_up)(struct schedule *))
{
    TAILQ_INIT(&process->loop.to_flush);
    TAILQ_INIT(&process->loop.late);
    TAILQ_INIT(&process->loop.no_room);
    LIST_INIT(&process->loop.guests);
    STAILQ_INIT(&process->loop.wakeups);
    schedule_initialize(&process->schedule, wake_up);
    schedule_initialize_timer(&process->loop.liveness, look_after_receivers);
}

nanos progress_timers(struct process *process, nanos now)
{
    lock_assert_held(&process->progress);
    bool opened = guard_begin(now);
    tell_of_departures(process, now);
    nanos earliest = schedule_expire(&process->schedule, now);
    foreign_settle();
    guard_end(opened);
    return earliest;
}

static void flush_held(void *endpoint, void *now)
{
    ((struct endpoint *)endpoint)->operations->flush(endpoint, *(const nanos *)now, false);
}

/* Packets that a disturbed queue pair still holds back are in no list. */
void progress_settle(struct process *process)
{
    lock_assert_held(&process->progress);
    nanos now = clock_now();
    bool opened = guard_begin(now);
    if (taps_end_lateness())
        qpns_each(process->numbers, flush_held, &now);
    flush_some(process, now, false);
    foreign_settle();
    guard_end(opened);
    atomic_store(&process->loop.owing, false);
}

void progress_forget(struct process *process, struct endpoint *endpoint)
{
    lock_assert_held(&process->progress);
    if (endpoint->to_flush)
        TAILQ_REMOVE(&process->loop.to_flush, endpoint, flush);
    if (endpoint->late)
        TAILQ_REMOVE(&process->loop.late, endpoint, wait);
    lock_take(&process->schedule.lock);
    if (endpoint->no_room)
        TAILQ_REMOVE(&process->loop.no_room, endpoint, room);
    lock_release(&process->schedule.lock);
    endpoint->to_flush = endpoint->late = endpoint->no_room = false;
    schedule_cancel(&process->schedule, &endpoint->timer);
}

/* Landings in memory of a GPU wait for packets that are on their way: each copy takes as long as several of them. */
cold static unsigned gather_landings(struct process *process)
{
    const nanos each = 10 * NANOS_MICROSECOND, longest = NANOS_MILLISECOND;
    nanos now = clock_now(), end = now + longest;
    unsigned done = 0, here;
    for (nanos until = now + each; foreign_waits() && now < until && now < end; now = clock_now()) {
        here = progress_round(process, false);
        done += here;
        if (here)
            until = clock_now() + each;
    }
    return done;
}

/* Races of pollers do no harm. */
cold void progress_watch_copies(struct process *process, uint32_t copies)
{
    const nanos most = 2 * NANOS_SECOND;
    nanos now = clock_about_now();
    if (copies != atomic_exchange(&process->poller.copies, copies)) {
        atomic_store(&process->poller.copies_since, now);
    } else if (nanos_since(atomic_load(&process->poller.copies_since), now) > most) {
        atomic_store(&process->poller.copies_since, NANOS_NEVER);
        log_reason(LOG_WARN, REASON_COPY_STALLS, "memory of a GPU");
    }
}

unsigned progress_work(struct process *process)
{
    lock_take(&process->progress);
    unsigned done = progress_round(process, false);
    if (unlikely(foreign_waits()))
        done += gather_landings(process);
    foreign_settle();
    lock_release(&process->progress);
    return done;
}

void progress_quiesce(struct process *process)
{
    lock_take(&process->progress);
    lock_release(&process->progress);
}
