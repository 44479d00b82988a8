#include "tap/taps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adverse/adverse.h"
#include "config/config.h"
#include "config/gid.h"
#include "config/link_layer.h"
#include "config/settings.h"
#include "diag/log.h"
#include "record/recorder.h"
#include "runtime/clock.h"
#include "script/rules.h"
#include "tap/delay.h"
#include "tap/scripted.h"
#include "tap/traffic.h"
#include "wire/bytes.h"
#include "wire/cm/mad.h"
#include "wire/grh.h"

enum { FIRST_PORT = 0xc000, HOPS = 64, ECN_CAPABLE = 2 };

static struct capture *open_capture(const char *name)
{
    char path[512], why[768];
    struct capture *capture = NULL;
    if (!name || !*name)
        return NULL;
    if (!capture_name(name, path, sizeof path))
        log_write(LOG_ERROR, "packets can't be captured: the name of the file is too long");
    else if (!(capture = capture_open(path, config_is_infiniband(), why, sizeof why)))
        log_write(LOG_ERROR, "%s", why);
    if (capture)
        capture_limit(capture, setting_number(SETTING_CAPTURE_MAX) << 20);
    return capture;
}

static void add_faults(const char *text, struct script *script)
{
    char why[512] = "there is no memory for its rules, or they are too many.";
    if (!script || !fault_parse(text, script, why, sizeof why) || (script->count && rules_add(script)))
        log_always("SOFTVERBS_FAULT ignored: %s", why);
}

/* Begins the faults once: their rules stay when the process closes its devices, and a child of a fork has them. */
static void begin_faults(const char *text)
{
    static bool begun;
    if (begun || !text || !*text)
        return;
    struct script *script = calloc(1, sizeof *script);
    add_faults(text, script);
    rules_use();
    free(script);
    begun = true;
}

static struct taps *make(struct node *node, struct schedule *schedule, const atomic_bool *closed)
{
    struct taps *taps = calloc(1, sizeof *taps);
    if (!taps)
        return NULL;
    lock_set_rank(&taps->lock, LOCK_INNERMOST);
    taps->node = node;
    taps->schedule = schedule;
    taps->closed = closed;
    schedule_initialize_timer(&taps->timer, delay_expired);
    TAILQ_INIT(&taps->delayed);
    return taps;
}

struct taps *taps_open(struct node *node, struct schedule *schedule, const atomic_bool *closed)
{
    begin_faults(setting_text(SETTING_FAULT));
    bool faulty = rules_wants(SCRIPT_packet);
    struct capture *capture = open_capture(setting_text(SETTING_CAPTURE));
    bool adverse = adverse_begin(setting_text(SETTING_ADVERSE));
    bool recorded = recorder_begin(setting_text(SETTING_RECORD), clock_now());
    bool wanted = capture || faulty || adverse || recorded || rules_wants(SCRIPT_message);
    struct taps *taps = wanted ? make(node, schedule, closed) : NULL;
    if (!taps) {
        if (capture)
            capture_close(capture);
        return NULL;
    }
    taps->capture = capture;
    taps->faulty = faulty;
    return taps;
}

struct taps *taps_script(struct taps *taps, struct node *node, struct schedule *schedule, const atomic_bool *closed)
{
    if (!taps)
        taps = make(node, schedule, closed);
    if (taps && rules_wants(SCRIPT_packet))
        taps->faulty = true;
    return taps;
}

void taps_close(struct taps *taps)
{
    if (taps && taps->capture)
        capture_close(taps->capture);
    free(taps);
}

/* Makes a source port for packets inside the host, from the sender's number, by which adapters distinguish flows. */
static uint16_t port_of(uint32_t number)
{
    return (uint16_t)(FIRST_PORT | number * 0x9e3779b1u >> 18);
}

static struct capture_way way_by(bool sent, uint32_t sender)
{
    return (struct capture_way){.sent = sent,
                                .from = sender,
                                .hop_limit = HOPS,
                                .route = {.source_port = port_of(sender),
                                          .destination_port = DATAGRAM_PORT,
                                          .fragment = DATAGRAM_DONT_FRAGMENT}};
}

static void go_by_grh(struct capture_way *way, const uint8_t *grh)
{
    union ibv_gid source, destination;
    bool ipv6 = grh[0] >> 4 == 6;
    gid_from_grh(grh, &source, &destination);
    memcpy(way->route.source, source.raw, 16);
    memcpy(way->route.destination, destination.raw, 16);
    way->traffic_class = ipv6 ? (uint8_t)(bytes_get32(grh) >> 20) : grh[21];
    way->hop_limit = ipv6 ? grh[7] : grh[28];
}

/* The GID of our end of a flow; without a flow, the first GID of the first device. */
static const union ibv_gid *own_gid(const struct traffic_flow *flow)
{
    const struct device *device = flow ? flow->device : config_device(0);
    const struct device_state *now = device_now(device);
    return &now->gids[flow ? flow->attr->ah_attr.grh.sgid_index : now->first_gid];
}

/* Takes LIDs and service level from the LRH, and the rest from the GRH; NULL: no GRH, even if a peer's LRH claims
 * one. */
static void go_by_lrh(struct capture_way *way, const uint8_t *lrh, const uint8_t *grh)
{
    way->infiniband = true;
    way->lrh = lrh_read(lrh);
    way->lrh.global = grh;
    if (grh)
        go_by_grh(way, grh);
}

/* Fills in both ends of the connection, as sent from our end or received. */
static void go_by_lids(struct capture_way *way, const struct traffic_flow *flow)
{
    const struct ibv_ah_attr *attr = &flow->attr->ah_attr;
    uint16_t here = flow->device->lid, there = attr->dlid ? attr->dlid : here; /* not known yet */
    way->infiniband = true;
    way->lrh = (struct lrh){.destination = way->sent ? there : here,
                            .source = way->sent ? here : there,
                            .sl = attr->sl,
                            .global = attr->is_global};
}

/* Fills in both ends, with addresses; a connection of InfiniBand may have no address. */
static void go_by_ends(struct capture_way *way, const struct traffic_flow *flow)
{
    if (flow && link_layer_is_infiniband(flow->device))
        go_by_lids(way, flow);
    static const union ibv_gid none;
    const union ibv_gid *here = own_gid(flow), *there = flow ? &flow->attr->ah_attr.grh.dgid : here;
    if (!memcmp(there, &none, sizeof none))
        there = here;
    memcpy(way->route.source, way->sent ? here : there, 16);
    memcpy(way->route.destination, way->sent ? there : here, 16);
}

/* The fields that go along for the receiver's capture: traffic class, hop limit and service level are the sender's. */
static uint32_t own_way(const struct traffic_flow *flow)
{
    const struct ibv_ah_attr *attr = &flow->attr->ah_attr;
    uint32_t hops = attr->grh.hop_limit ? attr->grh.hop_limit : HOPS;
    return FRAME_WAY_KNOWN | (uint32_t)(attr->sl & 0xf) << FRAME_WAY_LEVEL | hops << FRAME_WAY_HOPS |
           (uint32_t)attr->grh.traffic_class << FRAME_WAY_CLASS;
}

static void go_by_connection(struct capture_way *way, const struct traffic_flow *flow, uint32_t known)
{
    go_by_ends(way, flow);
    if (!(known & FRAME_WAY_KNOWN)) {
        way->lrh.sl = 0;
        way->note = flow ? "its traffic class is not known here" : NULL;
        return;
    }
    way->traffic_class = (uint8_t)(known >> FRAME_WAY_CLASS);
    way->hop_limit = (uint8_t)(known >> FRAME_WAY_HOPS);
    way->lrh.sl = known >> FRAME_WAY_LEVEL & 0xf;
}

void taps_sent(const struct traffic_flow *flow, const struct peer *peer, const struct link *link,
               const struct frame *frame, const char *note)
{
    struct capture *capture = atomic_load_explicit(&flow->traffic->taps, memory_order_acquire)->capture;
    size_t skip = frame_outer_length(frame->kind);
    if (!capture)
        return;
    if (frame->kind == FRAME_ETHERNET)
        return capture_ethernet(capture, true, &frame->payload, note);
    struct capture_way way = way_by(true, flow->number);
    way.note = note;
    if (frame->kind == FRAME_LRH)
        go_by_lrh(&way, frame->headers, NULL);
    else if (frame->kind == FRAME_LRH_GRH)
        go_by_lrh(&way, frame->headers, frame->headers + LRH_LENGTH);
    else if (skip)
        go_by_grh(&way, frame->headers);
    else
        go_by_connection(&way, flow, own_way(flow));
    if (!peer) {
        way.route.source_port = udp_source_port(link);
        way.traffic_class = (uint8_t)((way.traffic_class & ~3) | ECN_CAPABLE);
    }
    capture_roce(capture, &way, frame->headers + skip, frame->headers_length - skip, &frame->payload);
}

struct frame taps_leave(const struct traffic_flow *flow, const struct peer *peer, const struct frame *frame,
                        uint8_t room[FRAME_HEADERS_MAX])
{
    struct frame leaving = *frame;
    const struct taps *taps = atomic_load_explicit(&flow->traffic->taps, memory_order_acquire);
    if (!taps->capture || !peer || frame->kind != FRAME_ROCE)
        return leaving;
    bytes_put32(room, own_way(flow));
    memcpy(room + FRAME_WAY_LENGTH, frame->headers, frame->headers_length);
    leaving.kind = FRAME_CAPTURED;
    leaving.headers = room;
    leaving.headers_length = (uint16_t)(frame->headers_length + FRAME_WAY_LENGTH);
    return leaving;
}

void taps_responded(const struct taps *taps, const struct packet *request, const struct link *link,
                    const struct frame *frame)
{
    struct capture_way way = way_by(true, request->destination);
    union ibv_gid source, destination;
    if (!taps->capture)
        return;
    gid_from_grh(request->grh, &source, &destination);
    memcpy(way.route.source, destination.raw, 16);
    memcpy(way.route.destination, source.raw, 16);
    way.route.source_port = udp_source_port(link);
    way.traffic_class = ECN_CAPABLE;
    capture_roce(taps->capture, &way, frame->headers, frame->headers_length, &frame->payload);
}

void taps_managed(const struct taps *taps, const struct peer *peer, const struct link *link, const struct frame *frame,
                  const struct fault *fault)
{
    char words[96];
    struct capture_way way = way_by(true, MAD_QP);
    if (!taps->capture)
        return;
    way.note = fault_describe(fault, words, sizeof words);
    go_by_grh(&way, frame->headers);
    if (!peer) {
        way.route.source_port = udp_source_port(link);
        way.traffic_class = (uint8_t)((way.traffic_class & ~3) | ECN_CAPABLE);
    }
    capture_roce(taps->capture, &way, frame->headers + GRH_LENGTH, frame->headers_length - GRH_LENGTH, &frame->payload);
}

struct fault taps_disturb(struct taps *taps, const char *name)
{
    static const uint64_t stream = UINT64_MAX; /* no queue pair's */
    uint64_t number = atomic_fetch_add(&taps->managed, 1) + 1;
    struct fault fault = fault_draw(stream, number);
    if (!rules_wants(SCRIPT_message))
        return fault;
    struct script_verdict verdict =
        rules_apply((struct script_event){.call = SCRIPT_message, .name = name, .stream = stream, .number = number});
    scripted_add(&verdict, &fault);
    return fault;
}

bool taps_end_lateness(void)
{
    bool adverse = adverse_on;
    adverse_end();
    return adverse;
}

bool taps_may_lose(const struct traffic_flow *flow)
{
    return adverse_shows(ADVERSE_UNRELIABLE) && (flow->service == SERVICE_UD || flow->service == SERVICE_UC);
}

void taps_lose(const struct traffic_flow *flow, struct fault *fault)
{
    enum { LOST_IN = 64, REORDERED_IN = 16 };
    struct adverse_source dice = {.stream = flow->stream, .drawn = flow->stream_frames[0] << 8};
    bool drop = !adverse_draw(&dice, LOST_IN - 1);
    bool reorder = flow->service == SERVICE_UD && !adverse_draw(&dice, REORDERED_IN - 1);
    if (drop || reorder)
        adverse_note(ADVERSE_UNRELIABLE);
    fault_add(fault, (unsigned)drop << FAULT_DROP | (unsigned)reorder << FAULT_REORDER, 0);
}

void taps_received(const struct taps *taps, const struct traffic_flow *flow, const struct packet *packet,
                   const struct datagram_route *route)
{
    struct capture *capture = taps->capture;
    uint8_t headers[WIRE_HEADERS_MAX];
    if (!capture)
        return;
    bool connected = flow && flow->service != SERVICE_UD;
    struct capture_way way = way_by(false, connected ? flow->attr->dest_qp_num : packet->source);
    if (packet->lrh)
        go_by_lrh(&way, packet->lrh, packet->grh);
    else if (packet->grh)
        go_by_grh(&way, packet->grh);
    else
        go_by_connection(&way, flow, packet->way);
    if (route)
        way.route = *route;
    capture_roce(capture, &way, headers, wire_encode(packet, headers), &packet->payload);
}

void taps_refused(const struct taps *taps, const struct udp_refusal *refusal)
{
    char note[64];
    struct capture_way way = {.route = *refusal->route,
                              .traffic_class = refusal->traffic_class,
                              .hop_limit = refusal->hop_limit,
                              .note = note};
    if (!taps->capture)
        return;
    way.route.identification = 0; /* unknown */
    snprintf(note, sizeof note, "not taken: %s", wire_fault_text(refusal->fault));
    capture_datagram(taps->capture, &way, refusal->bytes, refusal->length);
}

void taps_received_frame(const struct taps *taps, const struct frame *frame)
{
    if (taps->capture)
        capture_ethernet(taps->capture, false, &frame->payload, NULL);
}
