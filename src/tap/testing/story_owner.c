/* The work of owners, by the functions under test, and their link, which is the network of the simulator. */
#include "tap/testing/story_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "tap/delay.h"
#include "wire/wire.h"

enum { LOOKS = 16 };

struct story_totals story_totals;
void (*story_ended)(struct end *, struct end *peer);

static atomic_bool closed;
static struct device device = {.name = "softverbs0"};

/* --- the clock of the code under test is the simulator's, which begins at 0: a record's time is never 0 */

static nanos current;

nanos clock_now(void)
{
    return current;
}

nanos clock_about_now(void)
{
    return current;
}

nanos clock_busy(void)
{
    return current;
}

static nanos real(nanos simulated)
{
    return simulated + NANOS_SECOND;
}

void story_complain(struct end *end, const char *format, ...)
{
    char *text = end->world->complaint;
    va_list arguments;
    if (*text)
        return;
    int used = snprintf(text, sizeof end->world->complaint, "qp 0x%x at %lld: ", end->flow.number, (long long)current);
    va_start(arguments, format);
    vsnprintf(text + used, sizeof end->world->complaint - (size_t)used, format, arguments);
    va_end(arguments);
}

/* --- records */

void story_append(struct records *records, struct story_record record)
{
    if (records->count == records->room) {
        records->room = records->room ? 2 * records->room : 256;
        records->list = realloc(records->list, records->room * sizeof *records->list);
        assert_non_null(records->list);
    }
    records->list[records->count++] = record;
}

struct end *story_end(struct watcher *watcher, const struct watched *watched)
{
    current = real(watched->now);
    struct end *end = &((struct world_of_test *)watcher)->ends[watched->index];
    end->flow.service = watched->service;
    end->flow.number = watched->number;
    end->flow.now = current;
    return end;
}

/* A record of a fault is one of the packet that leaves now. */
static void take_fault(struct end *end, const struct story_record *record, struct flight *flight)
{
    if (!flight || record->a != flight->number || record->more != flight->psn || record->b)
        story_complain(end, "the record of a fault names frame %llu, psn %u, of another packet",
                       (unsigned long long)record->a, record->more);
    else if (record->event == EVENT_FRAME_LOST)
        flight->lost++;
    else
        flight->kinds |= 1u << (record->event - EVENT_FAULT_DROP);
}

/* Copies the records that this event has left. `flight`: the packet that leaves, or NULL. */
static void drain(struct end *end, struct flight *flight)
{
    enum { SIZE = sizeof(struct story_record) };
    uint32_t written = traffic_written(&end->flow), fresh = (written - end->drained) / SIZE;
    if (fresh > STORY_RECENT)
        story_complain(end, "%u records of one event", fresh);
    for (; fresh && fresh <= STORY_RECENT; fresh--) {
        const struct story_record *record = &end->flow.recent->records[(written / SIZE - fresh) % STORY_RECENT];
        story_append(&end->seen, *record);
        story_totals.of[record->event]++;
        if (story_is_fault(record->event))
            take_fault(end, record, flight);
    }
    end->drained = written;
}

static void look_if_any(struct end *end)
{
    lock_take(&end->lock);
    if (end->flow.recent)
        story_look(end);
    lock_release(&end->lock);
}

static void settle(struct end *end, struct flight *flight)
{
    struct world_of_test *world = end->world;
    drain(end, flight);
    world->dice = world->dice * 6364136223846793005u + 1442695040888963407u;
    if ((world->dice >> 33) % LOOKS == 0 && end->flow.recent)
        story_look(end);
    lock_release(&end->lock);
}

/* --- the work of an owner, by the functions under test */

static struct end *begin(struct watcher *watcher, const struct watched *watched)
{
    struct end *end = story_end(watcher, watched);
    lock_take(&end->lock);
    return end;
}

/* Gives the packet the number of its flight, in bits of the BTH that have no meaning. */
static struct flight *take_off(struct end *end, const struct packet *packet, uint8_t *headers)
{
    uint32_t index = end->flown++ % FLIGHTS;
    bool answer = op_table[packet->opcode].flags & OP_RESPONSE;
    struct flight *flight = &end->flights[index];
    if (end->flown > FLIGHTS)
        story_complain(end, "sends too much");
    *flight = (struct flight){.psn = packet->psn, .answer = answer, .number = ++end->numbers[answer], .left = current};
    headers[4] |= index & 0x3f;
    headers[8] |= index >> 6 & 0x7f;
    return flight;
}

static void transmitted(struct watcher *watcher, const struct watched *watched, const struct packet *packet,
                        uint32_t along, uint32_t fresh)
{
    struct end *end = begin(watcher, watched);
    uint8_t headers[WIRE_HEADERS_MAX];
    const struct frame frame = {.kind = FRAME_ROCE,
                                .headers_length = (uint16_t)wire_encode(packet, headers),
                                .headers = headers,
                                .payload = packet->payload,
                                .along = along};
    struct flight *flight = take_off(end, packet, headers);
    bool reliable = watched->service == SERVICE_RC || watched->service == SERVICE_XRC;
    if (reliable)
        traffic_retransmitted(&end->flow, packet, fresh);
    end->link.operations->begin(&end->link);
    if (reliable && along)
        traffic_send_request(&end->flow, NULL, &end->link, &frame, op_operation(packet->opcode));
    else
        traffic_send(&end->flow, NULL, &end->link, &frame);
    traffic_end_batch(&end->flow, &end->link);
    flight->held = !flight->whole && !flight->damaged;
    settle(end, flight);
}

static void arrived(struct watcher *watcher, const struct watched *watched, const struct packet *packet)
{
    struct end *end = begin(watcher, watched);
    traffic_received(&end->flow, packet, NULL);
    settle(end, NULL);
}

static void sent(struct watcher *watcher, const struct watched *watched, const struct send_wqe *work,
                 enum ibv_wc_status status)
{
    struct end *end = begin(watcher, watched);
    traffic_note_ended(&end->flow, EVENT_SEND_ENDED, work->id, status, work->opcode);
    settle(end, NULL);
}

static void received(struct watcher *watcher, const struct watched *watched, const struct recv_wqe *receive,
                     const struct recv_cqe *arrival)
{
    struct end *end = begin(watcher, watched);
    traffic_note_ended(&end->flow, EVENT_RECEIVE_ENDED, receive->id, arrival->status, arrival->length);
    settle(end, NULL);
}

/* Only the engine notes time-outs: the timer has expired now, and the next request has the PSN. */
static void note(struct watcher *watcher, const struct watched *watched, enum event event, uint64_t a, uint64_t b)
{
    struct end *end = begin(watcher, watched);
    if (event != EVENT_ACK_TIMEOUT || end->expired != current || psn_distance((uint32_t)a, end->next) >= 0)
        story_complain(end, "a time-out of psn %u, next %u, is wrong", (unsigned)a, end->next);
    end->repeats = true;
    end->repeated = (uint32_t)a;
    story_tell(end, event, a, b, 0);
    traffic_note(&end->flow, event, a, b);
    settle(end, NULL);
}

static void dropped(struct watcher *watcher, const struct watched *watched, const struct packet *packet,
                    enum reason reason)
{
    struct end *end = begin(watcher, watched);
    traffic_note(&end->flow, EVENT_PACKET_DROPPED, reason, packet->psn);
    settle(end, NULL);
}

static void entered(struct watcher *watcher, const struct watched *watched, enum ibv_qp_state from,
                    enum ibv_qp_state to)
{
    struct end *end = begin(watcher, watched);
    traffic_note(&end->flow, EVENT_QP_STATE, from, to);
    settle(end, NULL);
}

static nanos due(struct watcher *watcher)
{
    struct world_of_test *world = (struct world_of_test *)watcher;
    nanos at = atomic_load(&world->taps.timer.at);
    return at == NANOS_NEVER || at < NANOS_SECOND ? at : at - NANOS_SECOND;
}

static void expired(struct watcher *watcher, nanos now)
{
    struct world_of_test *world = (struct world_of_test *)watcher;
    current = real(now);
    schedule_expire(&world->schedule, current);
}

static const struct watcher_operations watching = {story_noted, transmitted, arrived, sent, received,
                                                   note,        dropped,     entered, due,  expired};

/* --- the link, after all faults: the network of the simulator */

static bool link_begin(struct link *link)
{
    return true;
}

static void link_end(struct link *link)
{
}

static bool link_ready(struct link *link)
{
    return true;
}

/* A packet that a fault has damaged is dropped for its ICRC. */
static void land(struct end *end, struct flight *flight, const struct frame *frame)
{
    flight->came = flight->whole + flight->damaged ? flight->came : current;
    flight->overtaken |= flight->number < end->passed[flight->answer];
    if (!flight->overtaken)
        end->passed[flight->answer] = flight->number;
    flight->whole += !frame->corrupt;
    flight->damaged += frame->corrupt != 0;
}

static enum frame_sent link_send(struct link *link, const struct frame *frame)
{
    struct end *end = (struct end *)link;
    struct packet packet;
    uint8_t headers[WIRE_HEADERS_MAX] = {0};
    unsigned read, pad;
    memcpy(headers, frame->headers, frame->headers_length);
    struct flight *flight = &end->flights[(headers[4] & 0x3f) | (uint32_t)(headers[8] & 0x7f) << 6];
    headers[4] &= 0xc0;
    headers[8] &= 0x80;
    land(end, flight, frame);
    assert_int_equal(wire_decode(headers, frame->headers_length, &packet, &read, &pad), WIRE_FINE);
    packet.payload = frame->payload;
    if (!frame->corrupt)
        watcher_carry(&end->world->watcher, end->index, &packet, frame->along);
    return FRAME_SENT;
}

static const struct link_operations link_of_test = {
    .begin = link_begin, .end = link_end, .ready = link_ready, .send = link_send};

/* --- runs */

static void wake_nobody(struct schedule *schedule)
{
}

static struct world_of_test *make(uint64_t seed, bool faulty)
{
    struct world_of_test *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->watcher = (struct watcher){.operations = &watching, .disturbs = faulty};
    world->dice = seed;
    schedule_initialize(&world->schedule, wake_nobody);
    schedule_initialize_timer(&world->taps.timer, delay_expired);
    TAILQ_INIT(&world->taps.delayed);
    world->taps.schedule = &world->schedule;
    world->taps.closed = &closed;
    world->taps.faulty = true;
    atomic_init(&world->traffic.taps, faulty ? &world->taps : NULL);
    for (uint32_t i = 0; i < WATCHED_MOST; i++) {
        struct end *end = &world->ends[i];
        *end = (struct end){.link.operations = &link_of_test, .world = world, .index = i, .expired = NANOS_NEVER};
        end->flow = (struct traffic_flow){.traffic = &world->traffic,
                                          .lock = &end->lock,
                                          .device = &device,
                                          .attr = &end->attr,
                                          .stream = seed * WATCHED_MOST + i};
        end->flights = calloc(FLIGHTS, sizeof *end->flights);
        assert_non_null(end->flights);
    }
    return world;
}

static void destroy(struct world_of_test *world)
{
    for (uint32_t i = 0; i < WATCHED_MOST; i++) {
        traffic_release(&world->ends[i].flow);
        free(world->ends[i].seen.list);
        free(world->ends[i].told.list);
        free(world->ends[i].flights);
    }
    free(world);
}

/* The queue pairs of a connection have neighbouring numbers, the first of them an even one. */
static void let_inspect(struct world_of_test *world)
{
    for (uint32_t i = 0; i < WATCHED_MOST && story_ended; i++)
        if (world->ends[i].flow.recent && world->ends[i].flow.service != SERVICE_UD)
            story_ended(&world->ends[i], &world->ends[i ^ 1]);
}

bool story_run(uint64_t seed, bool faulty)
{
    char complaint[256];
    struct world_of_test *world = make(seed, faulty);
    watcher_run(&world->watcher, seed, complaint);
    for (uint32_t i = 0; i < WATCHED_MOST; i++) {
        look_if_any(&world->ends[i]);
        story_judge(&world->ends[i]);
    }
    let_inspect(world);
    if (world->taps.delayed_bytes)
        story_complain(&world->ends[0], "the run has ended, and packets are still held back");
    if (*complaint || *world->complaint)
        print_error("seed %llu: %s; %s\n", (unsigned long long)seed, world->complaint, complaint);
    bool fine = !*complaint && !*world->complaint;
    destroy(world);
    return fine;
}
