#include "verbs/traffic.h"

#include "config/config.h"
#include "diag/log.h"
#include "runtime/clock.h"
#include "transport/rc/syndrome.h"
#include "verbs/late.h"
#include "verbs/qp.h"
#include "verbs/qp_tell.h"
#include "verbs/taps.h"
#include "wire/op.h"

/* A reason of that range without a place of its own would be counted as another one. */
#define REASON(number, name, sentence)                                                                                 \
    _Static_assert((number) >= 100 || (number) < TRAFFIC_REASONS, "counted as " #name);
#include "diag/diag.def"
#include "wire/grh.h"
#undef REASON

enum { SYNDROME_AT = 12 /* of an ACKNOWLEDGE's headers */ };
static const nanos overtaken_by_nobody = NANOS_MILLISECOND; /* what waits for others to overtake it waits no longer */

static const uint8_t services[] = {[IBV_QPT_RC] = SERVICE_RC,
                                   [IBV_QPT_UC] = SERVICE_UC,
                                   [IBV_QPT_UD] = SERVICE_UD,
                                   [IBV_QPT_XRC_SEND] = SERVICE_XRC,
                                   [IBV_QPT_XRC_RECV] = SERVICE_XRC};

/* --- counting */

void traffic_begin(struct qp *qp)
{
    struct taps *taps = qp->process->taps;
    if (taps)
        qp->stream = atomic_fetch_add(&taps->streams, 1);
}

static void add_traffic(struct traffic *to, const struct traffic *from)
{
    to->bytes_sent += from->bytes_sent;
    to->bytes_received += from->bytes_received;
    to->repeated += from->repeated;
    to->timeouts += from->timeouts;
    to->naks_sent += from->naks_sent;
    to->naks_received += from->naks_received;
    to->rnrs_sent += from->rnrs_sent;
    to->rnrs_received += from->rnrs_received;
    to->cnps_sent += from->cnps_sent;
    to->cnps_received += from->cnps_received;
    to->faults += from->faults;
    for (unsigned i = 0; i < TRAFFIC_FAULT_KINDS; i++)
        to->fault_kinds[i] += from->fault_kinds[i];
    for (unsigned i = 0; i < TRAFFIC_REASONS; i++)
        to->dropped[i] += from->dropped[i];
}

void traffic_add(struct traffic_total *total, const struct qp *qp)
{
    unsigned service = qp->type == IBV_QPT_RAW_PACKET ? 0 : (unsigned)services[qp->type] << 5;
    if (qp->type == IBV_QPT_RAW_PACKET)
        total->rest.sent[0] += qp->traffic.sent[0];
    for (unsigned i = 0; i < TRAFFIC_OPERATIONS && qp->type != IBV_QPT_RAW_PACKET; i++) {
        total->sent[service | i] += qp->traffic.sent[i];
        total->received[service | i] += qp->traffic.received[i];
    }
    add_traffic(&total->rest, &qp->traffic);
}

void traffic_end(struct qp *qp)
{
    traffic_add(&qp->process->totals[qp->object.context->device->index], qp);
}

/* An answer that is no ACK. */
static void count_refusal(uint8_t syndrome, uint64_t *naks, uint64_t *rnrs)
{
    unsigned class = syndrome_class(syndrome);
    *rnrs += class == SYNDROME_CLASS_RNR;
    *naks += class == SYNDROME_CLASS_NAK;
}

static void count_sent(struct traffic *counts, const struct frame *frame)
{
    const uint8_t *headers = frame->headers + (frame->kind == FRAME_GRH ? GRH_LENGTH : 0);
    counts->bytes_sent += frame->payload.length;
    if (__builtin_expect(frame->kind == FRAME_ETHERNET, 0)) {
        counts->sent[0]++;
    } else if (__builtin_expect(op_service(headers[0]) == SERVICE_CNP, 0)) {
        counts->cnps_sent++;
    } else {
        counts->sent[op_operation(headers[0])]++;
        if (op_operation(headers[0]) == OPERATION_ACKNOWLEDGE && frame->kind == FRAME_ROCE &&
            __builtin_expect(headers[SYNDROME_AT] >> 5, 0))
            count_refusal(headers[SYNDROME_AT], &counts->naks_sent, &counts->rnrs_sent);
    }
}

static __attribute__((noinline)) void count_refused(struct qp *qp, uint8_t syndrome)
{
    struct traffic *counts = &qp->traffic;
    uint64_t before = counts->rnrs_received;
    count_refusal(syndrome, &counts->naks_received, &counts->rnrs_received);
    if (!before && counts->rnrs_received)
        qp_tell_waiting(qp);
}

static void count_received(struct qp *qp, const struct packet *packet)
{
    struct traffic *counts = &qp->traffic;
    counts->bytes_received += packet->payload.length;
    if (__builtin_expect(op_service(packet->opcode) == SERVICE_CNP, 0)) {
        counts->cnps_received++;
        return;
    }
    if (__builtin_expect(qp->type == IBV_QPT_RAW_PACKET || services[qp->type] != op_service(packet->opcode), 0)) {
        qp->process->strays.received[packet->opcode]++;
        return;
    }
    counts->received[op_operation(packet->opcode)]++;
    if (op_operation(packet->opcode) == OPERATION_ACKNOWLEDGE && __builtin_expect(packet->syndrome >> 5, 0))
        count_refused(qp, packet->syndrome);
}

/* --- sending */

bool traffic_is_faulty(const struct process *process)
{
    return __builtin_expect(process->taps != NULL, 0) && process->taps->faulty;
}

bool traffic_may_reference(const struct process *process, struct link *link)
{
    return !traffic_is_faulty(process) && link->operations->can_reference(link);
}

/* What was delayed before may have taken the room that the sender saw. */
static void send_copy(const struct late_way *way, const struct frame *frame)
{
    struct link *link = way->link;
    if (!link->operations->ready(link))
        late_keep(way, frame, clock_now(), 0);
    else
        link->operations->send(link, frame);
}

/* What is dropped meets nothing else. */
static void count_kinds(uint64_t counts[TRAFFIC_FAULT_KINDS], const struct fault *fault)
{
    counts[TRAFFIC_FAULT_DROP] += fault->drop;
    if (fault->drop)
        return;
    counts[TRAFFIC_FAULT_DUPLICATE] += fault->duplicate;
    counts[TRAFFIC_FAULT_REORDER] += fault->reorder;
    counts[TRAFFIC_FAULT_DELAY] += fault->delay != 0;
    counts[TRAFFIC_FAULT_CORRUPT] += fault->corrupt != 0;
}

/* Without a delay, what is reordered waits for some that follow; with one, it leaves before those that have it. Links
 * inside the host have no ICRC that could catch flipped bits, so there the frame is lost at once. */
static void pass_through(const struct late_way *way, const struct frame *frame, const struct fault *fault,
                         uint64_t number, struct traffic *counts)
{
    struct frame changed = *frame;
    bool waits = fault->reorder ? !fault->delay : fault->delay != 0;
    count_kinds(counts->fault_kinds, fault);
    if (fault->drop || (fault->corrupt && way->peer)) {
        counts->faults++;
        return;
    }
    changed.corrupt = fault->corrupt;
    counts->faults += fault->corrupt != 0;
    for (int copy = 0; copy <= fault->duplicate; copy++)
        if (!waits)
            send_copy(way, &changed);
        else if (!late_keep(way, &changed, clock_now() + (fault->delay ? fault->delay : overtaken_by_nobody),
                            fault->reorder ? number + fault->behind : 0))
            counts->faults++;
}

/* Requests and answers are streams of their own: how many answers there are is a matter of timing. */
static bool is_answer(const struct frame *frame)
{
    return frame->kind == FRAME_ROCE && op_table[frame->headers[0]].flags & OP_RESPONSE;
}

static bool send_plainly(struct link *link, const struct frame *frame)
{
    return link->operations->send(link, frame) != FRAME_UNREADABLE;
}

static bool __attribute__((noinline))
send_tapped(struct qp *qp, struct peer *peer, struct link *link, const struct frame *frame)
{
    struct taps *taps = qp->process->taps;
    char words[96];
    if (!taps->faulty) {
        taps_sent(qp, peer, link, frame, NULL);
        return send_plainly(link, frame);
    }
    if (!payload_is_there(&frame->payload)) /* what becomes of the frame is not known before it has left */
        return false;
    bool answer = is_answer(frame);
    struct late_way way = {qp->process, peer, link, qp->stream * 2 + answer};
    uint64_t number = ++qp->stream_frames[answer];
    struct fault fault = fault_draw(&taps->plan, way.stream, number);
    taps_sent(qp, peer, link, frame, taps->capture ? fault_describe(&fault, words, sizeof words) : NULL);
    pass_through(&way, frame, &fault, number, &qp->traffic);
    late_overtaken(&way, number);
    return true;
}

bool traffic_send(struct qp *qp, struct peer *peer, struct link *link, const struct frame *frame)
{
    lock_assert_held(&qp->lock);
    count_sent(&qp->traffic, frame);
    if (__builtin_expect(qp->process->taps != NULL, 0))
        return send_tapped(qp, peer, link, frame);
    return send_plainly(link, frame);
}

void traffic_missed(struct qp *qp, const struct peer *peer)
{
    qp->traffic.dropped[traffic_reason(REASON_PACKET_MEMBER)]++;
    log_reason(LOG_INFO, REASON_PACKET_MEMBER, "qp 0x%x to process %d", qp->number, (int)peer->pid);
}

/* --- arriving */

void traffic_received(struct qp *qp, const struct packet *packet, const struct datagram_route *route)
{
    lock_assert_held(&qp->lock);
    count_received(qp, packet);
    if (__builtin_expect(qp->process->taps != NULL, 0))
        taps_received(qp->process, qp, packet, route);
}

void traffic_managed(struct process *process, const struct packet *packet, const struct datagram_route *route)
{
    process->strays.received[packet->opcode]++;
    process->strays.rest.bytes_received += packet->payload.length;
    if (process->taps)
        taps_received(process, NULL, packet, route);
}

/* It has no stream of faults: which packets of queue pairs meet them must not depend on who asks from outside. */
void traffic_send_alone(struct process *process, struct link *link, const struct packet *request,
                        const struct frame *frame)
{
    process->strays.sent[frame->headers[0]]++;
    process->strays.rest.bytes_sent += frame->payload.length;
    if (process->taps)
        taps_answered(process, request, link, frame);
    link->operations->send(link, frame);
}

void traffic_stray(struct process *process, const struct packet *packet, const struct datagram_route *route,
                   enum reason reason)
{
    traffic_managed(process, packet, route);
    process->strays.rest.dropped[traffic_reason(reason)]++;
}

void traffic_unread(struct process *process, enum reason reason)
{
    process->strays.rest.dropped[traffic_reason(reason)]++;
}

void traffic_received_frame(struct process *process, const struct frame *frame)
{
    process->strays.rest.received[0]++;
    process->strays.rest.bytes_received += frame->payload.length;
    if (process->taps)
        taps_received_frame(process, frame);
}
