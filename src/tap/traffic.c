#include "tap/traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/likely.h"
#include "diag/log.h"
#include "runtime/clock.h"
#include "script/rules.h"
#include "tap/delay.h"
#include "tap/scripted.h"
#include "tap/taps.h"
#include "wire/bytes.h"
#include "wire/op.h"

enum { CACHE_LINE = 64, PSN_AT = 8 /* in a BTH, after a byte */ };

/* The longest time that a frame waits for others to overtake it. */
static const nanos overtaken_by_nobody = NANOS_MILLISECOND;

/* --- the traffic of a process */

int traffic_open(struct traffic *traffic, struct node *node, struct schedule *schedule, const atomic_bool *closed)
{
    traffic->totals = calloc(DEVICES_MAX, sizeof *traffic->totals);
    atomic_init(&traffic->taps, taps_open(node, schedule, closed));
    return traffic->totals ? 0 : ENOMEM;
}

void traffic_close(struct traffic *traffic)
{
    taps_close(traffic_taps(traffic));
    free(traffic->totals);
}

bool traffic_script(struct traffic *traffic, struct node *node, struct schedule *schedule, const atomic_bool *closed)
{
    struct taps *before = traffic_taps(traffic), *taps = taps_script(before, node, schedule, closed);
    atomic_store_explicit(&traffic->taps, taps, memory_order_release);
    return !before && taps;
}

/* --- counting */

void traffic_begin(struct traffic_flow *flow)
{
    struct taps *taps = traffic_taps(flow->traffic);
    if (taps)
        flow->stream = atomic_fetch_add(&taps->streams, 1);
}

void traffic_add(struct counts_total *total, const struct traffic_flow *flow)
{
    bool packets = flow->service != TRAFFIC_NO_SERVICE;
    unsigned service = (unsigned)flow->service << 5;
    for (unsigned event = 0; event < EVENTS_OF_PACKETS; event++) {
        if (!packets)
            total->rest.packets[event][0] += flow->counts.packets[event][0];
        for (unsigned i = 0; i < COUNTS_OPERATIONS && packets; i++)
            total->packets[event][service | i] += flow->counts.packets[event][i];
    }
    counts_sum(&total->rest, &flow->counts);
}

uint64_t traffic_count_writes(const struct traffic_flow *flow)
{
    static const uint8_t operations[] = {OPERATION_WRITE_FIRST, OPERATION_WRITE_ONLY,   OPERATION_WRITE_ONLY_IMMEDIATE,
                                         OPERATION_FETCH_ADD,   OPERATION_COMPARE_SWAP, OPERATION_ATOMIC_WRITE};
    uint64_t count = 0;
    for (size_t at = 0; at < sizeof operations; at++)
        count += flow->counts.packets[EVENT_PACKET_RECEIVED][operations[at]];
    return count;
}

void traffic_end(struct traffic_flow *flow)
{
    traffic_add(&flow->traffic->totals[flow->device->index], flow);
}

static struct story *allocate_story(void)
{
    size_t size = (sizeof(struct story) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct story *story = aligned_alloc(CACHE_LINE, size);
    if (story)
        memset(story, 0, size);
    return story;
}

cold struct story *traffic_story(struct traffic_flow *flow)
{
    lock_assert_held(flow->lock);
    if (!flow->story)
        flow->story = allocate_story();
    return flow->story;
}

/* The records begin at the first line of the cache within malloc's memory, so that each line has two records, and no
 * record is in two lines. aligned_alloc would cost 50 ns, a tenth of a first message. Records are read after they are
 * written. */
static void allocate_recent(struct traffic_flow *flow)
{
    enum { MALLOC = _Alignof(max_align_t) };
    char *memory = malloc(sizeof *flow->recent + CACHE_LINE - MALLOC);
    if (!memory)
        return;
    flow->before_records = (uint8_t)(-(uintptr_t)memory % CACHE_LINE);
    flow->recent = (struct story_recent *)(memory + flow->before_records);
}

cold struct story_recent *traffic_recent(struct traffic_flow *flow)
{
    lock_assert_held(flow->lock);
    if (!flow->recent)
        allocate_recent(flow);
    return flow->recent;
}

void traffic_settle(struct traffic_flow *flow)
{
    struct story *story = flow->story ? flow->story : traffic_story(flow);
    if (story)
        story_settle(story, flow->recent, flow->written);
}

void traffic_release(struct traffic_flow *flow)
{
    if (flow->story) {
        free(flow->story->failed);
        free(flow->story->refused);
    }
    free(flow->story);
    if (flow->recent)
        free((char *)flow->recent - flow->before_records);
    flow->story = NULL;
    flow->recent = NULL;
}

/* A forgotten receive is the program's mistake. It is reported once, as it may be repeated for ever. With rnr_retry 0
 * it is not repeated: the work's end says all (reason 106). */
static void tell_not_ready(const struct traffic_flow *flow)
{
    const struct ibv_qp_attr *attr = flow->attr;
    if (counts_number(&flow->counts, EVENT_RNR_RECEIVED) == 1 && attr->rnr_retry)
        log_reason(LOG_WARN, REASON_PEER_NOT_READY, "qp 0x%x: to qp 0x%x, rnr_retry is %u%s", flow->number,
                   attr->dest_qp_num, attr->rnr_retry, attr->rnr_retry == 7 ? " (for ever)" : "");
}

/* Notes an RNR NAK or a NAK; other classes are not refusals. */
static void note_refusal(struct traffic_flow *flow, uint32_t psn, uint8_t syndrome, enum event nak, enum event rnr)
{
    unsigned class = syndrome_class(syndrome);
    if (class == SYNDROME_CLASS_RNR || class == SYNDROME_CLASS_NAK)
        traffic_note(flow, class == SYNDROME_CLASS_RNR ? rnr : nak, psn, syndrome);
    if (class == SYNDROME_CLASS_RNR && rnr == EVENT_RNR_RECEIVED)
        tell_not_ready(flow);
}

cold void traffic_note_refusal_sent(struct traffic_flow *flow, const uint8_t *headers)
{
    note_refusal(flow, bytes_get32(headers + PSN_AT) & PSN_MASK, headers[TRAFFIC_SYNDROME_AT], EVENT_NAK_SENT,
                 EVENT_RNR_SENT);
}

/* Notes a packet that arrived or was sent and belongs to no queue pair. */
static void note_stray(struct traffic *traffic, enum event event, uint8_t opcode, uint64_t length)
{
    event_probe(0, event, opcode, length);
    traffic->strays.packets[event][opcode]++;
    traffic->strays.rest.sums[event_sum(event)] += length;
}

/* A packet of another service than the queue pair's is counted with those for no queue pair. */
cold void traffic_received_slow(struct traffic_flow *flow, const struct packet *packet)
{
    unsigned operation = op_operation(packet->opcode);
    if (op_service(packet->opcode) == SERVICE_CNP) {
        traffic_note(flow, EVENT_CNP_RECEIVED, packet->psn, packet->payload.length);
    } else if (op_service(packet->opcode) != flow->service) {
        note_stray(flow->traffic, EVENT_PACKET_RECEIVED, packet->opcode, packet->payload.length);
    } else {
        traffic_note_more(flow, EVENT_PACKET_RECEIVED, operation, packet->payload.length, packet->psn);
        if (operation == OPERATION_ACKNOWLEDGE)
            note_refusal(flow, packet->psn, packet->syndrome, EVENT_NAK_RECEIVED, EVENT_RNR_RECEIVED);
    }
}

/* --- sending */

bool traffic_may_reference(const struct traffic *traffic, struct link *link)
{
    return !traffic_is_faulty(traffic) && link->operations->can_reference(link);
}

/* A link does not keep the order of frames that a fault holds back. */
bool traffic_has_lost_references(const struct traffic *traffic, struct link *link)
{
    struct taps *taps = traffic_taps(traffic);
    return !link->operations->can_reference(link) && (!taps || delay_is_quiet(taps, link));
}

/* Frames that were delayed before may have taken the room that the sender saw. */
static void send_copy(const struct delay_way *way, const struct frame *frame)
{
    struct link *link = way->link;
    if (!link->operations->ready(link))
        delay_keep(way, frame, clock_now(), 0);
    else
        link->operations->send(link, frame);
}

/* The frame's PSN, or 0. */
static uint32_t psn_of(const struct frame *frame)
{
    return frame->kind == FRAME_ROCE ? bytes_get32(frame->headers + PSN_AT) & PSN_MASK : 0;
}

static void note_faults(struct traffic_flow *flow, const struct fault *fault, uint64_t number, uint32_t psn)
{
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
        if (fault_has(fault, kind))
            traffic_note_more(flow, event_of_fault(kind), number, 0, psn);
}

/* The due time of a stream that waits until frames are released: STREAM_HELD + the number of releases until now. */
#define STREAM_HELD (1ull << 62)

/* Returns true if the frame waits until it is released, as do later ones of the stream. A moment after the release
 * the order need not be kept any more: the held frames have left. */
static bool is_held(struct traffic_flow *flow, struct fault *fault, bool hold, uint32_t releases, nanos now)
{
    nanos held = STREAM_HELD + releases;
    if (fault_has(fault, FAULT_DROP) || (!hold && flow->stream_due < STREAM_HELD))
        return false;
    if (!hold && flow->stream_due != held) {
        flow->stream_due = now + overtaken_by_nobody;
        return false;
    }
    flow->stream_due = held;
    fault->kinds &= ~(1u << FAULT_REORDER);
    fault->delay = 1;
    return true;
}

/* When the frame leaves, if nothing reorders it. A network whose delay varies keeps the order of a flow, so a frame
 * that drew a shorter delay than the one before it leaves right after that. */
static nanos keep_order(struct traffic_flow *flow, struct fault *fault, bool hold, uint32_t releases)
{
    lock_assert_held(flow->lock);
    nanos now = clock_now(), due = now + fault->delay;
    if (is_held(flow, fault, hold, releases, now))
        return DELAY_HELD;
    if (due < flow->stream_due)
        due = flow->stream_due;
    fault->delay = due - now;
    if (!fault_has(fault, FAULT_REORDER) && !fault_has(fault, FAULT_DROP))
        flow->stream_due = due;
    return due;
}

/* A reordered frame waits for some that follow. Links inside the host have no ICRC that could catch flipped bits, so
 * there the frame is lost at once. */
static void pass_through(struct traffic_flow *flow, const struct delay_way *way, const struct frame *frame,
                         const struct fault *fault, nanos due, uint64_t number)
{
    uint8_t room[FRAME_HEADERS_MAX];
    struct frame changed = taps_leave(flow, way->peer, frame, room);
    bool reordered = fault_has(fault, FAULT_REORDER), dropped = fault_has(fault, FAULT_DROP);
    nanos latest = reordered ? due + overtaken_by_nobody : due;
    if (dropped || fault->corrupt)
        traffic_note_more(flow, EVENT_FRAME_LOST, number, 0, psn_of(frame));
    if (dropped || (fault->corrupt && way->peer))
        return;
    changed.corrupt = fault->corrupt;
    for (int copy = 0; copy <= (int)fault_has(fault, FAULT_DUPLICATE); copy++)
        if (!reordered && !fault->delay)
            send_copy(way, &changed);
        else if (!delay_keep(way, &changed, latest, reordered ? number + fault->behind : 0))
            traffic_note_more(flow, EVENT_FRAME_LOST, number, 0, psn_of(frame));
}

/* Requests and answers are separate streams: the number of answers depends on timing. */
static bool is_response(const struct frame *frame)
{
    return frame->kind == FRAME_ROCE && op_table[frame->headers[0]].flags & OP_RESPONSE;
}

/* Writes the peer's program, "server", or its address, "10.0.0.2". */
static void name_peer(const struct traffic_flow *flow, const struct peer *peer, char *text, size_t size)
{
    union ibv_gid gid = flow->attr->ah_attr.grh.dgid;
    const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool ipv4 = !memcmp(gid.raw, mapped, sizeof mapped);
    if (peer)
        node_program(traffic_taps(flow->traffic)->node, peer, text, size);
    else
        inet_ntop(ipv4 ? AF_INET : AF_INET6, gid.raw + (ipv4 ? sizeof mapped : 0), text, (socklen_t)size);
}

/* Returns the verdict of the rules on the packet, and adds their faults to those that it has. */
static struct script_verdict meet_packet(const struct traffic_flow *flow, const struct peer *peer,
                                         const struct frame *frame, uint64_t number, uint64_t stream,
                                         struct fault *fault)
{
    char name[64];
    bool ethernet = frame->kind == FRAME_ETHERNET;
    name_peer(flow, peer, name, sizeof name);
    struct script_verdict verdict = rules_apply((struct script_event){
        .call = SCRIPT_packet,
        .subject = {"qp", flow->number},
        .device = flow->device->name,
        .name = ethernet ? "ETHERNET" : op_table[frame->headers[frame_outer_length(frame->kind)]].name,
        .peer = name,
        .stream = stream + 1,
        .number = number,
        .bytes = frame->headers_length + frame->payload.length,
        .peer_qp = flow->service == SERVICE_UD ? 0 : flow->attr->dest_qp_num});
    scripted_add(&verdict, fault);
    return verdict;
}

/* Sends a forged frame, which meets no faults itself. Between the link's begin and end. */
static void send_forged(struct traffic_flow *flow, const struct delay_way *way, const struct frame *forged)
{
    traffic_note_sent(flow, forged);
    taps_sent(flow, way->peer, way->link, forged, "fault: forged");
    uint8_t room[FRAME_HEADERS_MAX];
    struct frame leaving = taps_leave(flow, way->peer, forged, room);
    send_copy(way, &leaving);
}

cold bool traffic_send_tapped(struct traffic_flow *flow, struct peer *peer, struct link *link,
                              const struct frame *frame)
{
    struct taps *taps = traffic_taps(flow->traffic);
    char words[128];
    struct scripted_frame made;
    struct script_verdict verdict = {0};
    bool exempt = frame->payload.by_reference; /* begun before the rules: it meets no rule, and no copy may wait */
    if (exempt || (!taps->faulty && !taps_may_lose(flow))) {
        uint8_t room[FRAME_HEADERS_MAX];
        struct frame leaving = taps_leave(flow, peer, frame, room);
        taps_sent(flow, peer, link, frame, NULL);
        return link->operations->send(link, &leaving) != FRAME_UNREADABLE;
    }
    if (!payload_is_there(&frame->payload)) /* the fate of the frame is not known before it has left */
        return false;
    bool response = is_response(frame);
    struct delay_way way = {taps, peer, link, flow->stream * 2 + response, atomic_load(&taps->releases)};
    uint64_t number = ++flow->stream_frames[response];
    struct fault fault = fault_draw(way.stream, number);
    if (taps_may_lose(flow))
        taps_lose(flow, &fault);
    if (taps->faulty)
        verdict = meet_packet(flow, peer, frame, number, way.stream, &fault);
    if (verdict_has(&verdict, SCRIPT_RELEASE)) {
        delay_release_held(taps);
        way.releases = atomic_load(&taps->releases);
    }
    if (scripted_forge(&verdict, frame, &made))
        send_forged(flow, &way, &made.frame);
    note_faults(flow, &fault, number, psn_of(frame));
    nanos due = keep_order(flow, &fault, verdict_has(&verdict, SCRIPT_HOLD), way.releases);
    taps_sent(flow, peer, link, frame, taps->capture ? scripted_describe(&verdict, &fault, words, sizeof words) : NULL);
    pass_through(flow, &way, scripted_change(&verdict, frame, &made), &fault, due, number);
    delay_overtaken(&way, number, fault.delay ? due : 0);
    return true;
}

void traffic_missed(struct traffic_flow *flow, const struct peer *peer)
{
    traffic_note(flow, EVENT_PACKET_DROPPED, REASON_PACKET_MEMBER, 0);
    log_reason(LOG_INFO, REASON_PACKET_MEMBER, "qp 0x%x to process %d", flow->number, (int)peer->pid);
}

/* --- arriving */

void traffic_managed(struct traffic *traffic, const struct packet *packet, const struct datagram_route *route)
{
    note_stray(traffic, EVENT_PACKET_RECEIVED, packet->opcode, packet->payload.length);
    if (traffic_taps(traffic))
        taps_received(traffic_taps(traffic), NULL, packet, route);
}

/* The answer has no stream of faults: which packets of queue pairs meet faults must not depend on requests from
 * outside. */
void traffic_send_alone(struct traffic *traffic, struct link *link, const struct packet *request,
                        const struct frame *frame)
{
    note_stray(traffic, EVENT_PACKET_SENT, frame->headers[0], frame->payload.length);
    if (traffic_taps(traffic))
        taps_responded(traffic_taps(traffic), request, link, frame);
    link->operations->send(link, frame);
}

/* Counts the packet by its reason, with a line in the log: a warning if the packet was damaged. */
static void note_drop(struct traffic *traffic, enum reason reason, const char *format, va_list arguments)
{
    char text[96];
    enum log_level level = reason <= REASON_PACKET_ICRC ? LOG_WARN : LOG_INFO;
    event_probe(0, EVENT_PACKET_DROPPED, reason, 0);
    counts_note(&traffic->strays.rest, EVENT_PACKET_DROPPED, reason, 0);
    if (!log_wanted(level))
        return;
    vsnprintf(text, sizeof text, format, arguments);
    log_reason(level, reason, "%s", text);
}

void traffic_stray(struct traffic *traffic, const struct packet *packet, const struct datagram_route *route,
                   enum reason reason, const char *format, ...)
{
    va_list arguments;
    traffic_managed(traffic, packet, route);
    va_start(arguments, format);
    note_drop(traffic, reason, format, arguments);
    va_end(arguments);
}

void traffic_dropped(struct traffic *traffic, enum reason reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note_drop(traffic, reason, format, arguments);
    va_end(arguments);
}

/* A repeated packet may be refused again and again. */
cold void traffic_count_unsent(struct traffic_flow *flow, struct link *link)
{
    int error = atomic_load(&link->error);
    enum reason reason = error ? REASON_PACKET_UNSENT : REASON_PACKET_OVERSIZED;
    uint32_t *dropped = &flow->counts.reasons[counts_place(reason)];
    log_reason(*dropped ? LOG_DEBUG : LOG_WARN, reason, error ? "qp 0x%x: %s" : "qp 0x%x", flow->number,
               strerror(error));
    *dropped += atomic_exchange(&link->unsent, 0);
}

int traffic_take_unsent(struct link *link)
{
    return atomic_exchange(&link->unsent, 0) ? atomic_load(&link->error) : 0;
}

void traffic_received_frame(struct traffic *traffic, const struct frame *frame)
{
    event_probe(0, EVENT_PACKET_RECEIVED, 0, frame->payload.length);
    counts_note(&traffic->strays.rest, EVENT_PACKET_RECEIVED, 0, frame->payload.length);
    if (traffic_taps(traffic))
        taps_received_frame(traffic_taps(traffic), frame);
}
