/* A raw packet queue pair: bytes of the fuzzer become work requests, frames that arrive, receives, and owners'
 * calls. The properties that must hold: work ends once each, in the order of posting, and with success only when all
 * its frames have left; a frame that leaves is as it was posted, and the segments of an IBV_WR_TSO add up to it,
 * each with sound headers and checksums; a frame that arrives is stored unchanged (except its tag and frame check),
 * and no byte after it; a frame without a receive, or longer than it, changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "transport/engine/engine.h"
#include "wire/testing/ether_frames.h"

enum {
    SLOTS = 8,
    SGES = 3,
    ROOM = 2048, /* bytes of a slot after the work: elements and headers */
    SLOT = sizeof(struct send_wqe) + ROOM,
    SOURCE = 24576,
    PLACE = 1200, /* of a receive, with its guard */
    KEY_SOURCE = 1,
    KEY_PLACE = 2,
    TCP = 6,
    UDP = 17,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

struct posted {
    struct recv_wqe receive;
    struct ibv_sge sge[SGES];
    uint32_t room;
};

static struct machine {
    struct engine_owner owner; /* first: the host's operations get it */
    struct engine engine;
    _Alignas(8) uint8_t slots[SLOTS * SLOT];
    uint8_t *source, *places; /* separate blocks, so that a sanitizer sees their ends */
    uint64_t works, ended;    /* ids of work posted and ended */
    uint32_t left_of_head;    /* bytes that the oldest work has sent */
    struct posted posted[SLOTS];
    unsigned receives, taken;     /* ids of receives posted and taken */
    unsigned successes, failures; /* of receives; of the queue pair */
    uint32_t arrived;             /* length of the last */
    uint16_t cvlan;
    bool deregistered;
} * machine;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static uint32_t take(struct input *input, unsigned bytes)
{
    uint32_t value = 0;
    for (; bytes && input->left; bytes--, input->left--)
        value = value << 8 | *input->at++;
    return value;
}

static uint32_t take_bytes(struct input *input, uint8_t *to, uint32_t most)
{
    uint32_t length = input->left < most ? (uint32_t)input->left : most;
    if (length)
        memcpy(to, input->at, length);
    input->at += length;
    input->left -= length;
    return length;
}

/* ---- the owner ---- */

static void sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason)
{
    require(work->id == machine->ended++ && (status == IBV_WC_SUCCESS) == !reason);
    if (status == IBV_WC_SUCCESS)
        require(machine->left_of_head == work->length);
    machine->left_of_head = 0;
}

static uint8_t *place_of(unsigned id)
{
    return machine->places + id % SLOTS * PLACE;
}

static const struct recv_wqe *take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    if (machine->taken == machine->receives)
        return NULL;
    const struct posted *posted = &machine->posted[machine->taken % SLOTS];
    if (posted->room < least)
        return &receive_too_short;
    machine->taken++;
    return &posted->receive;
}

static void received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    require(receive->id + 1 == machine->taken);
    require(arrival->status == IBV_WC_SUCCESS || machine->deregistered);
    machine->successes += arrival->status == IBV_WC_SUCCESS;
    machine->arrived = arrival->length;
    machine->cvlan = arrival->cvlan;
}

static enum reason local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                struct iovec *out)
{
    bool stores = access & IBV_ACCESS_LOCAL_WRITE;
    uint8_t *memory = stores ? machine->places : machine->source;
    uint64_t size = stores ? SLOTS * PLACE : SOURCE;
    if (machine->deregistered || sge->lkey != (stores ? KEY_PLACE : KEY_SOURCE))
        return REASON_LOCAL_KEY_UNKNOWN;
    if (sge->addr > size || sge->length > size - sge->addr)
        return REASON_LOCAL_RANGE;
    *out = (struct iovec){memory + sge->addr, sge->length};
    return REASON_NONE;
}

static void failed(struct engine_owner *owner, bool sqe)
{
    machine->failures++;
    require(sqe ? engine_has_send_error(&machine->engine) : engine_has_failed(&machine->engine));
}

static void event(struct engine_owner *owner, enum ibv_event_type type)
{
    require(type == IBV_EVENT_SQ_DRAINED && machine->engine.unreliable.draining);
}

static void dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    require(reason);
}

static const struct owner_operations operations = {
    .sent = sent,
    .take_receive = take_receive,
    .received = received,
    .local_memory = local_memory,
    .receive_memory = local_memory,
    .failed = failed,
    .event = event,
    .dropped = dropped,
};

/* ---- sending ---- */

static uint32_t add_elements(struct send_wqe *work, struct input *input, uint32_t most)
{
    uint32_t length = 0;
    work->sge_count = (uint8_t)(take(input, 1) % (SGES + 1));
    for (unsigned i = 0; i < work->sge_count; i++) {
        uint32_t at = take(input, 2) % SOURCE, part = take(input, 2) % most;
        if (part > SOURCE - at && part % 16) /* now and then beyond the end */
            part = SOURCE - at;
        work->sge[i] = (struct ibv_sge){.addr = at, .length = part, .lkey = part % 64 == 63 ? 9 : KEY_SOURCE};
        length += part;
    }
    return length;
}

/* Headers as programs write them, or the bytes of the input. */
static uint32_t make_header(struct input *input, uint8_t *to)
{
    static const uint8_t addresses[32] = {0xfd, 1};
    struct frame_maker maker = {0};
    uint32_t how = take(input, 1);
    if (how % 8 == 0)
        return take_bytes(input, to, how % 3 ? 80 : RAW_TSO_HEADER_MAX);
    uint16_t type = how & 16 ? ETHER_TYPE_IPV6 : ETHER_TYPE_IPV4;
    frame_ethernet(&maker, 1, 2, how & 32 ? ETHER_TYPE_VLAN : type);
    if (how & 32)
        frame_tag(&maker, 5, type);
    if (how & 16)
        frame_ipv6(&maker, how & 64 ? UDP : TCP, addresses, addresses + 16);
    else
        frame_ipv4(&maker, how & 64 ? UDP : TCP, 1, 2);
    if (how & 64)
        frame_udp(&maker, 3, 4);
    else
        frame_tcp(&maker, 3, 4)[13] = (uint8_t)take(input, 1);
    maker.bytes[take(input, 1) % maker.length] ^= how & 128 ? (uint8_t)take(input, 1) : 0;
    memcpy(to, maker.bytes, maker.length);
    return maker.length;
}

static void post(struct input *input)
{
    struct send_wqe *work = send_queue_reserve(engine_queue(&machine->engine));
    uint32_t how = take(input, 1);
    if (!work)
        return;
    *work = (struct send_wqe){.id = machine->works, .opcode = how & 1 ? IBV_WR_TSO : IBV_WR_SEND};
    work->flags = how & 2 ? IBV_SEND_IP_CSUM : 0;
    if (how & 1) {
        work->length = add_elements(work, input, 6000);
        work->remote_address = SGES * sizeof(struct ibv_sge);
        work->swap = take(input, 2) % 9000;
        work->compare_or_add = make_header(input, raw_tso_header(work));
    } else if (how & 4) {
        work->flags |= IBV_SEND_INLINE;
        work->length = take_bytes(input, work->inline_data, how & 8 ? 100 : ROOM);
    } else {
        work->length = add_elements(work, input, how & 8 ? 5000 : 600);
    }
    if (how > 250)
        work->opcode = IBV_WR_RDMA_READ;
    machine->works++;
    send_queue_commit(engine_queue(&machine->engine));
    engine_posted(&machine->engine);
}

/* Checks the bytes of the work's message, from `offset` on, in the frame. */
static void check_bytes(const struct send_wqe *work, uint32_t offset, const uint8_t *bytes, uint32_t length)
{
    if (work->flags & IBV_SEND_INLINE) {
        require(!memcmp(bytes, work->inline_data + offset, length));
        return;
    }
    for (unsigned i = 0; length && i < work->sge_count; i++) {
        uint32_t size = work->sge[i].length;
        if (offset >= size) {
            offset -= size;
            continue;
        }
        uint32_t part = length < size - offset ? length : size - offset;
        require(!memcmp(bytes, machine->source + work->sge[i].addr + offset, part));
        bytes += part;
        length -= part;
        offset = 0;
    }
    require(!length);
}

/* Checks that each segment's headers describe the segment (a TCP sequence number counts bytes, FIN and PSH are the last
 * one's). */
static void check_headers(const struct send_wqe *work, const struct ether *ether, bool last)
{
    const uint8_t *ip = ether_header(ether, &ether->layers[1]), *to = ether_header(ether, &ether->layers[2]);
    const uint8_t *given = raw_tso_header(work) + ether->layers[2].offset;
    uint32_t behind = ether->length - ether->layers[1].offset, here = ether->length - ether->layers[2].offset;
    if (ether->layers[1].kind == ETHER_IPV4)
        require(bytes_get16(ip + 2) == behind && ether_checksums_hold(ether));
    else
        require(bytes_get16(ip + 4) == behind - 40);
    if (ether->layers[2].kind == ETHER_UDP) {
        require(bytes_get16(to + 4) == here);
        return;
    }
    require(bytes_get32(to + 4) == bytes_get32(given + 4) + machine->left_of_head);
    require((to[13] & 0x09) == (last ? given[13] & 0x09 : 0));
}

static void check_segment(const struct send_wqe *work, const uint8_t *frame, uint32_t length)
{
    struct ether ether;
    uint32_t header = (uint32_t)work->compare_or_add, here = length - header,
             left = work->length - machine->left_of_head;
    require(length >= header && here == (left < work->swap ? left : work->swap));
    check_bytes(work, machine->left_of_head, frame + header, here);
    ether_parse(&ether, frame, length);
    require(ether.count == 3 && ether.layers[2].offset + ether.layers[2].size == header);
    require(!memcmp(frame, raw_tso_header(work), 12));
    check_headers(work, &ether, here == left);
}

/* Mends the mistake, and returns to RTS at once, as owners do. */
static void mend(void)
{
    engine_resume(&machine->engine);
    machine->deregistered = false;
}

/* Checksums may have been written into a plain frame; all else is as it was posted. */
static void check_plain(const struct send_wqe *work, const uint8_t *frame, uint32_t length)
{
    require(length == work->length);
    if (!(work->flags & IBV_SEND_IP_CSUM))
        check_bytes(work, 0, frame, length);
    else
        check_bytes(work, 0, frame, ETHER_HEADER);
}

static void send_next(bool leaves, bool mends)
{
    static uint8_t frame[RAW_FRAME_MAX], again[RAW_FRAME_MAX];
    uint32_t length, same;
    unsigned failures = machine->failures;
    struct engine *engine = &machine->engine;
    if (!engine_next_frame(engine, frame, &length)) {
        require(!engine_has_output(engine) || machine->failures > failures);
        if (mends)
            mend();
        return;
    }
    const struct send_wqe *work = send_queue_at(engine_queue(engine), engine_queue(engine)->next);
    require(length >= (work->opcode == IBV_WR_TSO ? 1 : ETHER_HEADER) && length <= RAW_FRAME_MAX);
    require(engine_next_frame(engine, again, &same) && same == length && !memcmp(frame, again, length));
    if (work->opcode == IBV_WR_TSO)
        check_segment(work, frame, length);
    else
        check_plain(work, frame, length);
    if (!leaves)
        return;
    machine->left_of_head += work->opcode == IBV_WR_TSO ? length - (uint32_t)work->compare_or_add : length;
    engine_frame_sent(engine);
}

/* ---- receiving ---- */

static void post_receive(struct input *input)
{
    unsigned id = machine->receives;
    struct posted *posted = &machine->posted[id % SLOTS];
    if (id - machine->taken == SLOTS)
        return;
    uint32_t at = id % SLOTS * PLACE;
    *posted = (struct posted){.receive = {.id = id, .sge = posted->sge, .sge_count = take(input, 1) % (SGES + 1)}};
    for (unsigned i = 0; i < posted->receive.sge_count; i++) {
        posted->sge[i] = (struct ibv_sge){.addr = at + posted->room, .length = take(input, 1), .lkey = KEY_PLACE};
        posted->room += posted->sge[i].length;
    }
    memset(place_of(id), 0xa5, PLACE);
    machine->receives++;
}

static uint32_t put(uint8_t *to, uint32_t at, const uint8_t *bytes, uint32_t length)
{
    memcpy(to + at, bytes, length);
    return at + length;
}

/* Writes the bytes that the receive must have. */
static uint32_t expect(const struct ether *ether, uint8_t *to)
{
    enum { ADDRESSES = 12, TAGGED = ETHER_HEADER + ETHER_TAG };
    const uint8_t *bytes = ether->bytes;
    uint32_t length = 0;
    bool tagged = ether->length >= TAGGED && bytes[12] == 0x81 && !bytes[13];
    if (engine_settings_of(&machine->engine)->options & RAW_STRIP_VLAN && tagged) {
        length = put(to, 0, bytes, ADDRESSES);
        length = put(to, length, bytes + ADDRESSES + ETHER_TAG, ether->length - ADDRESSES - ETHER_TAG);
    } else {
        length = put(to, 0, bytes, ether->length);
    }
    if (engine_settings_of(&machine->engine)->options & RAW_STORE_FRAME_CHECK) {
        ether_frame_check(bytes, ether->length, to + length);
        length += ETHER_FCS;
    }
    return length;
}

static void arrive(struct input *input)
{
    uint8_t bytes[1024], expected[1024 + ETHER_FCS];
    uint32_t how = take(input, 1), length = take_bytes(input, bytes, how & 1 ? 80 : 1000);
    unsigned taken = machine->taken, successes = machine->successes;
    struct ether ether;
    if (length < ETHER_HEADER) /* a shorter frame never gets here */
        return;
    if (how & 2)
        bytes[12] = 0x81, bytes[13] = 0;
    ether_parse(&ether, bytes, length);
    engine_receive_frame(&machine->engine,
                         &(struct raw_frame){.ether = &ether, .checksums_hold = how & 4, .flow_tag = how});
    if (machine->successes == successes)
        return;
    uint32_t stored = expect(&ether, expected);
    require(machine->taken == taken + 1 && machine->arrived == stored && stored <= machine->posted[taken % SLOTS].room);
    require(!memcmp(place_of(taken), expected, stored));
    for (uint32_t i = stored; i < PLACE; i++)
        require(place_of(taken)[i] == 0xa5);
}

/* ---- all of it ---- */

static void start(void)
{
    engine_start_receiving(&machine->engine, 0);
    engine_start_transmitting(&machine->engine, 0);
}

static void flush(void)
{
    engine_flush(&machine->engine);
    require(machine->ended == machine->works);
}

static void reset(void)
{
    engine_reset(&machine->engine);
    machine->ended = machine->works;
    machine->left_of_head = 0;
    start();
}

static void load_source(struct input *input)
{
    uint32_t at = take(input, 2) % SOURCE;
    take_bytes(input, machine->source + at, take(input, 1) < SOURCE - at ? 256 < SOURCE - at ? 256 : SOURCE - at : 1);
}

static void own(struct input *input)
{
    uint32_t how = take(input, 1);
    switch (how % 6) {
    case 0:
        engine_drain(&machine->engine, how & 64);
        break;
    case 1:
        flush();
        break;
    case 2:
        reset();
        break;
    case 3:
        engine_resume(&machine->engine);
        break;
    case 4:
        machine->deregistered = how & 64;
        break;
    default:
        load_source(input);
    }
}

static void step(struct input *input)
{
    uint32_t what = take(input, 1);
    switch (what % 8) {
    case 0:
    case 1:
        post(input);
        break;
    case 2:
        post_receive(input);
        break;
    case 3:
        arrive(input);
        break;
    case 4:
        own(input);
        break;
    case 5:
        for (unsigned i = 0; i < 20; i++)
            send_next(true, what & 64);
        break;
    default:
        send_next(what & 64, what & 32);
    }
}

static void make(void)
{
    machine = calloc(1, sizeof *machine);
    require(machine);
    machine->source = malloc(SOURCE);
    machine->places = malloc(SLOTS * PLACE);
    require(machine->source && machine->places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    if (!machine)
        make();
    *machine = (struct machine){.source = machine->source, .places = machine->places};
    machine->owner.operations = &operations;
    for (uint32_t i = 0; i < SOURCE; i++)
        machine->source[i] = (uint8_t)(i * 31 >> 3);
    struct send_queue queue = {.memory = machine->slots, .stride = SLOT, .capacity = SLOTS};
    engine_initialize_raw(&machine->engine, &machine->owner, &queue);
    engine_configure(&machine->engine, &(struct engine_settings){.options = take(&input, 1) % 4});
    start();
    while (input.left)
        step(&input);
    flush();
    return 0;
}
