#include "tap/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/log.h"
#include "runtime/clock.h"
#include "tap/delay.h"
#include "tap/taps.h"
#include "wire/op.h"

/* A reason of that range without a place of its own would be counted as another one. */
#define REASON(number, name, sentence)                                                                                 \
    _Static_assert((number) >= 100 || (number) < COUNTS_REASONS, "counted as " #name);
#include "diag/diag.def"
#include "wire/grh.h"
#undef REASON

static const nanos overtaken_by_nobody = NANOS_MILLISECOND; /* what waits for others to overtake it waits no longer */

/* --- of a process */

int traffic_open(struct traffic *traffic, struct node *node, struct schedule *schedule, const atomic_bool *closed)
{
    traffic->totals = calloc(DEVICES_MAX, sizeof *traffic->totals);
    traffic->taps = taps_open(node, schedule, closed);
    return traffic->totals ? 0 : ENOMEM;
}

void traffic_close(struct traffic *traffic)
{
    taps_close(traffic->taps);
    free(traffic->totals);
}

/* --- counting */

void traffic_begin(struct traffic_flow *flow)
{
    struct taps *taps = flow->traffic->taps;
    if (taps)
        flow->stream = atomic_fetch_add(&taps->streams, 1);
}

static void add_traffic(struct counts *to, const struct counts *from)
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
    to->direct_writes += from->direct_writes;
    to->direct_reads += from->direct_reads;
    to->direct_bytes += from->direct_bytes;
    to->faults += from->faults;
    for (unsigned i = 0; i < TRAFFIC_FAULT_KINDS; i++)
        to->fault_kinds[i] += from->fault_kinds[i];
    for (unsigned i = 0; i < COUNTS_REASONS; i++)
        to->dropped[i] += from->dropped[i];
}

void traffic_add(struct counts_total *total, const struct traffic_flow *flow)
{
    bool packets = flow->service != TRAFFIC_NO_SERVICE;
    unsigned service = (unsigned)flow->service << 5;
    if (!packets)
        total->rest.sent[0] += flow->counts.sent[0];
    for (unsigned i = 0; i < COUNTS_OPERATIONS && packets; i++) {
        total->sent[service | i] += flow->counts.sent[i];
        total->received[service | i] += flow->counts.received[i];
    }
    add_traffic(&total->rest, &flow->counts);
}

void traffic_end(struct traffic_flow *flow)
{
    traffic_add(&flow->traffic->totals[flow->device->index], flow);
}

__attribute__((noinline)) void traffic_count_refusal(uint8_t syndrome, uint64_t *naks, uint64_t *rnrs)
{
    unsigned class = syndrome_class(syndrome);
    *rnrs += class == SYNDROME_CLASS_RNR;
    *naks += class == SYNDROME_CLASS_NAK;
}

__attribute__((noinline)) void traffic_count_unusual(struct traffic_flow *flow, const struct packet *packet)
{
    struct counts *counts = &flow->counts;
    if (op_service(packet->opcode) == SERVICE_CNP)
        counts->cnps_received++;
    else if (op_service(packet->opcode) != flow->service)
        flow->traffic->strays.received[packet->opcode]++;
    else {
        counts->received[op_operation(packet->opcode)]++;
        if (op_operation(packet->opcode) == OPERATION_ACKNOWLEDGE)
            traffic_count_refusal(packet->syndrome, &counts->naks_received, &counts->rnrs_received);
    }
}

/* --- sending */

bool traffic_may_reference(const struct traffic *traffic, struct link *link)
{
    return !traffic_is_faulty(traffic) && link->operations->can_reference(link);
}

/* What was delayed before may have taken the room that the sender saw. */
static void send_copy(const struct delay_way *way, const struct frame *frame)
{
    struct link *link = way->link;
    if (!link->operations->ready(link))
        delay_keep(way, frame, clock_now(), 0);
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

/* When the frame leaves, if nothing reorders it. A network whose delay varies keeps the order of a flow, so a frame
 * that drew a shorter delay than the one before it leaves right behind that. */
static nanos keep_order(struct traffic_flow *flow, struct fault *fault)
{
    lock_assert_held(flow->lock);
    nanos now = clock_now(), due = now + fault->delay;
    if (due < flow->stream_due)
        due = flow->stream_due;
    fault->delay = due - now;
    if (!fault->reorder && !fault->drop)
        flow->stream_due = due;
    return due;
}

/* What is reordered waits for some that follow. Links inside the host have no ICRC that could catch flipped bits, so
 * there the frame is lost at once. */
static void pass_through(const struct delay_way *way, const struct frame *frame, const struct fault *fault, nanos due,
                         uint64_t number, struct counts *counts)
{
    struct frame changed = *frame;
    nanos latest = fault->reorder ? due + overtaken_by_nobody : due;
    if (fault->drop || (fault->corrupt && way->peer)) {
        counts->faults++;
        return;
    }
    changed.corrupt = fault->corrupt;
    counts->faults += fault->corrupt != 0;
    for (int copy = 0; copy <= fault->duplicate; copy++)
        if (!fault->reorder && !fault->delay)
            send_copy(way, &changed);
        else if (!delay_keep(way, &changed, latest, fault->reorder ? number + fault->behind : 0))
            counts->faults++;
}

/* Requests and answers are streams of their own: how many answers there are is a matter of timing. */
static bool is_response(const struct frame *frame)
{
    return frame->kind == FRAME_ROCE && op_table[frame->headers[0]].flags & OP_RESPONSE;
}

__attribute__((noinline)) bool traffic_send_tapped(struct traffic_flow *flow, struct peer *peer, struct link *link,
                                                   const struct frame *frame)
{
    struct taps *taps = flow->traffic->taps;
    char words[96];
    if (!taps->faulty) {
        taps_sent(flow, peer, link, frame, NULL);
        return link->operations->send(link, frame) != FRAME_UNREADABLE;
    }
    if (!payload_is_there(&frame->payload)) /* what becomes of the frame is not known before it has left */
        return false;
    bool answer = is_response(frame);
    struct delay_way way = {flow->traffic->taps, peer, link, flow->stream * 2 + answer};
    uint64_t number = ++flow->stream_frames[answer];
    struct fault fault = fault_draw(&taps->plan, way.stream, number);
    count_kinds(flow->counts.fault_kinds, &fault);
    nanos due = keep_order(flow, &fault);
    taps_sent(flow, peer, link, frame, taps->capture ? fault_describe(&fault, words, sizeof words) : NULL);
    pass_through(&way, frame, &fault, due, number, &flow->counts);
    delay_overtaken(&way, number, fault.delay ? due : 0);
    return true;
}

void traffic_missed(struct traffic_flow *flow, const struct peer *peer)
{
    flow->counts.dropped[counts_reason(REASON_PACKET_MEMBER)]++;
    log_reason(LOG_INFO, REASON_PACKET_MEMBER, "qp 0x%x to process %d", flow->number, (int)peer->pid);
}

/* --- arriving */

void traffic_managed(struct traffic *traffic, const struct packet *packet, const struct datagram_route *route)
{
    traffic->strays.received[packet->opcode]++;
    traffic->strays.rest.bytes_received += packet->payload.length;
    if (traffic->taps)
        taps_received(traffic->taps, NULL, packet, route);
}

/* It has no stream of faults: which packets of queue pairs meet them must not depend on who asks from outside. */
void traffic_send_alone(struct traffic *traffic, struct link *link, const struct packet *request,
                        const struct frame *frame)
{
    traffic->strays.sent[frame->headers[0]]++;
    traffic->strays.rest.bytes_sent += frame->payload.length;
    if (traffic->taps)
        taps_responded(traffic->taps, request, link, frame);
    link->operations->send(link, frame);
}

void traffic_stray(struct traffic *traffic, const struct packet *packet, const struct datagram_route *route,
                   enum reason reason)
{
    traffic_managed(traffic, packet, route);
    traffic->strays.rest.dropped[counts_reason(reason)]++;
}

void traffic_unread(struct traffic *traffic, enum reason reason)
{
    traffic->strays.rest.dropped[counts_reason(reason)]++;
}

/* What is repeated may be refused again and again. */
__attribute__((noinline)) void traffic_count_unsent(struct traffic_flow *flow, struct link *link)
{
    uint32_t *dropped = &flow->counts.dropped[counts_reason(REASON_PACKET_UNSENT)];
    log_reason(*dropped ? LOG_DEBUG : LOG_WARN, REASON_PACKET_UNSENT, "qp 0x%x: %s", flow->number,
               strerror(atomic_load(&link->error)));
    *dropped += atomic_exchange(&link->unsent, 0);
}

bool traffic_unsent_alone(struct link *link, enum reason reason)
{
    unsigned count = atomic_exchange(&link->unsent, 0);
    if (count)
        log_reason(LOG_INFO, reason, "qp 1: %s", strerror(atomic_load(&link->error)));
    return count != 0;
}

void traffic_received_frame(struct traffic *traffic, const struct frame *frame)
{
    traffic->strays.rest.received[0]++;
    traffic->strays.rest.bytes_received += frame->payload.length;
    if (traffic->taps)
        taps_received_frame(traffic->taps, frame);
}
