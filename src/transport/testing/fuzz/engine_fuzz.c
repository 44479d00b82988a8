/* libFuzzer: a pair of engines of one service. The bytes are first settings, then a sequence of posts, packets that
 * are carried, lost, repeated, changed or invented, of time, and of owners' calls. For all inputs, no engine
 * crashes; each work request and each receive ends once and in order; no success that was not delivered, no byte out
 * of place, nothing executed twice; state that a packet must not change stays (engine.c). A pair that met only an
 * unreliable wire ends everything, and its memory is as the work says. */
#include <string.h>

#include "transport/testing/fuzz/bench.h"
#include "wire/psn.h"

enum { KEPT = 8, SETTINGS = 6 };

struct kept {
    struct packet packet;
    uint8_t bytes[BENCH_LONGEST];
    struct side *to;
};

static struct bench bench;
static struct kept kept[KEPT];
static unsigned keeping;
static struct engine_settings reliable_settings; /* the input's settings, which owners change later */

/* ---- settings ---- */

static void set_reliable(struct side *side, const uint8_t *draw)
{
    static const uint8_t rnr_retries[] = {0, 2, 7, 7};
    struct send_queue queue = {
        .memory = side->queue, .stride = sizeof side->queue / BENCH_QUEUE, .capacity = BENCH_QUEUE};
    engine_initialize(&side->engine, bench.service, &side->owner, &queue, side->saved);
    side->watched = NANOS_NEVER;
    reliable_settings = (struct engine_settings){
        .service = bench.service,
        .pkey = BENCH_PKEY,
        .destination = 0x22,
        .segment = BENCH_SEGMENT,
        .reference_segment = draw[1] & 1 ? BENCH_REFERENCE : 0,
        .reference_from = BENCH_REFERENCE,
        .in_pieces = draw[1] & 2,
        .exact = (draw[1] & 3) == 2,
        .window = draw[2] % 16 + 1,
        .first_window = draw[1] & 4 ? (draw[2] >> 4) % 8 + 1 : 0,
        .timeout = draw[1] & 8 ? 14 : 8,
        .retry_count = draw[1] >> 4 & 7,
        .rnr_retry = rnr_retries[draw[3] & 3],
        .min_rnr_timer = draw[3] >> 2 & 31,
        .max_rd_atomic = draw[4] & 15 ? draw[4] % 5 : 4,
        .max_dest_rd_atomic = 4 + (draw[4] >> 4) % 8,
        .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        .max_message = BENCH_LONGEST,
        .ack_mask = draw[3] >> 7 ? 3 : 0,
        .acks_along = draw[0] / 6 % 2,
    };
}

static void set_unreliable(struct side *side, unsigned access, bool exact)
{
    struct send_queue queue = {
        .memory = side->queue, .stride = sizeof side->queue / BENCH_QUEUE, .capacity = BENCH_QUEUE};
    engine_initialize(&side->engine, bench.service, &side->owner, &queue, NULL);
    const struct engine_settings settings = {
        .pkey = BENCH_PKEY,
        .segment = BENCH_SEGMENT,
        .max_message = bench.service == SERVICE_UC ? BENCH_LONGEST : BENCH_REFERENCE,
        .access = access,
        .exact = exact,
        .qkey = BENCH_QKEY,
    };
    engine_configure(&side->engine, &settings);
}

static void configure(struct input *input)
{
    static const enum service services[] = {SERVICE_RC, SERVICE_RC, SERVICE_XRC, SERVICE_UC, SERVICE_UD, SERVICE_RC};
    uint8_t draw[SETTINGS];
    for (unsigned i = 0; i < SETTINGS; i++)
        draw[i] = (uint8_t)input_take(input, 1);
    bench.service = services[draw[0] % 6];
    bench.first_psn = psn_add(PSN_MASK, -(draw[5] & 63u));
    bench.later = draw[5] & 64;
    bench.unaligned = draw[5] & 128;
    bench.now = NANOS_SECOND;
    for (unsigned i = 0; i < 2; i++)
        if (bench_is_reliable(&bench))
            set_reliable(&bench.sides[i], draw);
        else
            set_unreliable(&bench.sides[i], draw[1] & 1 ? IBV_ACCESS_REMOTE_WRITE : 0, draw[1] & 2);
}

static void restart(void)
{
    bench.honest = true;
    keeping = 0;
    bench_reset(&bench);
    for (unsigned i = 0; i < 2 && bench_is_reliable(&bench); i++)
        engine_configure(&bench.sides[i].engine, &reliable_settings);
    bench_start(&bench);
}

/* ---- the wire ---- */

static bool cannot_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    return false;
}

/* Lets a packet arrive from a heap block of exactly its size, so that a read past it is noticed. */
static void arrive(struct side *to, struct packet packet, const uint8_t *bytes, bool broken)
{
    uint32_t length = packet.payload.length;
    struct iovec piece = {malloc(length ? length : 1), length};
    memcpy(piece.iov_base, bytes, length);
    packet.payload = (struct payload){.length = length, .count = length > 0, .pieces = length ? &piece : NULL};
    if (broken && length)
        packet.payload.pull = cannot_pull;
    bench_receive(to, &packet);
    free(piece.iov_base);
}

enum { FATE_LOST = 1, FATE_KEPT = 2, FATE_BROKEN = 4 };

/* Lets an ACK arrive along with the packet; no copy of it is kept. */
static void arrive_along(struct side *to, uint32_t along)
{
    if (along)
        engine_receive_along(&to->engine, along, bench.now);
}

static bool carry(struct side *from, unsigned fate)
{
    struct packet packet;
    uint8_t bytes[BENCH_LONGEST];
    uint32_t along = 0;
    if (!bench_transmit(from, &packet, bytes, &along))
        return false;
    if (fate & FATE_KEPT) {
        struct kept *place = &kept[keeping++ % KEPT];
        place->packet = packet;
        place->to = from->peer;
        memcpy(place->bytes, bytes, packet.payload.length);
    }
    if (fate & FATE_LOST)
        return true;
    arrive_along(from->peer, along);
    arrive(from->peer, packet, bytes, fate & FATE_BROKEN);
    return true;
}

static struct kept *choose_kept(struct input *input)
{
    unsigned have = keeping < KEPT ? keeping : KEPT;
    return have ? &kept[input_take(input, 1) % have] : NULL;
}

static void replay(struct input *input)
{
    struct kept *chosen = choose_kept(input);
    if (chosen)
        arrive(chosen->to, chosen->packet, chosen->bytes, false);
}

/* Changes one thing, as an attacker on the way that knows the connection; or sends the packet to the wrong side. */
static void forge(struct input *input)
{
    struct kept *chosen = choose_kept(input);
    if (!chosen)
        return;
    struct packet packet = chosen->packet;
    struct side *to = chosen->to;
    uint32_t how = input_take(input, 1), value = input_take(input, 1);
    bench.honest = false;
    switch (how % 12) {
    case 0:
        packet.psn = psn_add(packet.psn, value - 128);
        break;
    case 1:
        packet.opcode = (uint8_t)(packet.opcode & 0xe0) | (value & 31);
        break;
    case 2:
        packet.opcode = (uint8_t)value;
        break;
    case 3:
        packet.payload.length = value * 4 % (packet.payload.length + 1);
        break;
    case 4:
        packet.length = value & 128 ? ~value : value * 4;
        break;
    case 5:
        packet.address += value * 8 - 512;
        break;
    case 6:
        packet.rkey = value << 8;
        break;
    case 7:
        packet.pkey = value & 1 ? 0x7fff : (uint16_t)(value << 8);
        break;
    case 8:
        packet.syndrome = (uint8_t)value;
        break;
    case 9:
        packet.qkey ^= value;
        packet.srq ^= value;
        break;
    case 10:
        packet.invalidate_key ^= value;
        packet.original ^= value;
        break;
    default:
        to = to->peer;
    }
    if (op_find(packet.opcode))
        arrive(to, packet, chosen->bytes, false);
}

/* A packet near what is expected or outstanding. */
static void invent(struct side *to, struct input *input)
{
    static const uint8_t nothing[BENCH_LONGEST];
    uint32_t what = input_take(input, 1), basis = 0, value = input_take(input, 2);
    struct packet packet = {
        .pkey = BENCH_PKEY, .qkey = BENCH_QKEY, .ack_requested = what & 128, .srq = 1 + (what >> 6 & 1)};
    packet.opcode = op_code(bench.service, what & 31);
    if (!op_find(packet.opcode))
        return;
    if (bench_is_reliable(&bench))
        basis = op_find(packet.opcode)->flags & OP_RESPONSE ? to->engine.rc.requester.acked_psn
                                                            : to->engine.rc.responder.expected_psn;
    packet.psn = psn_add(basis, input_take(input, 1) - 64);
    packet.payload.length = op_find(packet.opcode)->flags & OP_PAYLOAD ? value % (BENCH_LONGEST + 1) : 0;
    packet.syndrome = (uint8_t)input_take(input, 1);
    packet.address = input_take(input, 2) % 2500;
    packet.length = what & 32 ? packet.payload.length : input_take(input, 4);
    packet.rkey = (value >> 10 & 7) << 8;
    packet.invalidate_key = packet.rkey;
    bench.honest = false;
    arrive(to, packet, nothing, false);
}

/* Invents a number in the place of an ACK along. */
static void invent_along(struct side *to, struct input *input)
{
    uint32_t kind = input_take(input, 1), near = input_take(input, 1);
    bench.honest = false;
    if (bench_is_reliable(&bench))
        arrive_along(to, kind << 24 | psn_add(to->engine.rc.requester.acked_psn, near - 64));
}

/* ---- time, and owners ---- */

static void expire(void)
{
    for (unsigned i = 0; i < 2 && bench_is_reliable(&bench); i++) {
        struct side *side = &bench.sides[i];
        if (engine_deadline(&side->engine) <= bench.now)
            engine_expire(&side->engine, bench.now, PEER_SILENT, REASON_NONE);
        side->watched = engine_watch(&side->engine);
    }
}

/* Waits for the next deadline. False: no deadline is set. */
static bool wait(void)
{
    if (!bench_is_reliable(&bench))
        return false;
    nanos first = engine_deadline(&bench.sides[0].engine), second = engine_deadline(&bench.sides[1].engine);
    nanos next = first < second ? first : second;
    if (next == NANOS_NEVER)
        return false;
    bench.now = next > bench.now ? next : bench.now;
    expire();
    return true;
}

static void interfere_reliably(struct side *side, unsigned how)
{
    const struct packet notification = {.opcode = SERVICE_CNP << 5 | 1, .pkey = BENCH_PKEY};
    struct engine_settings settings = *engine_settings_of(&side->engine);
    switch (how % 8) {
    case 0:
        engine_expire(&side->engine, bench.now, PEER_SLOW, REASON_NONE);
        return;
    case 1:
        engine_receive(&side->engine, &notification, bench.now);
        return;
    case 2:
        settings.max_dest_rd_atomic = 4 + how / 32; /* not below what the peer may use */
        break;
    case 3:
        settings.rnr_retry = how & 8 ? 7 : 2;
        break;
    case 4:
        settings.in_pieces = how & 8;
        break;
    case 5:
        settings.max_dest_rd_atomic = how / 32;
        side->excuses |= EXCUSE_ACCESS;
        break;
    case 6:
        settings.access = how / 8;
        side->excuses |= EXCUSE_ACCESS;
        break;
    default:
        bench.now += (nanos)(how + 1) * 20 * NANOS_MICROSECOND;
        expire();
        return;
    }
    engine_configure(&side->engine, &settings);
}

static void interfere(struct side *side, unsigned how)
{
    switch (how % 8) {
    case 0:
        engine_drain(&side->engine, how & 8);
        return;
    case 1:
        if (how & 8)
            engine_flush(&side->engine);
        return;
    case 2:
        side->deregistered = how & 8;
        side->excuses |= EXCUSE_DEREGISTERED;
        return;
    case 3:
        if (how & 8)
            restart();
        return;
    case 4:
        side->bind_fails = how & 8;
        side->excuses |= EXCUSE_BIND;
        return;
    case 5: /* RTR or SQE to RTS */
        bench_ready(&bench);
        engine_resume(&side->engine);
        return;
    default:
        if (bench_is_reliable(&bench))
            interfere_reliably(side, how >> 3 << 3 | (how >> 3 & 7));
    }
}

static void step(struct input *input)
{
    unsigned what = input_take(input, 1);
    struct side *side = &bench.sides[what & 1];
    switch (what >> 1 & 15) {
    case 0 ... 3:
        bench_post(side, input);
        return;
    case 4 ... 5:
        bench_post_a_receive(side, input);
        return;
    case 6 ... 8:
        carry(side, 0);
        return;
    case 9: /* many at once */
        for (unsigned i = 0; i <= what >> 5 && carry(side, 0); i++)
            ;
        return;
    case 10 ... 11:
        carry(side, what >> 5 & 7);
        return;
    case 12:
        replay(input);
        return;
    case 13:
        wait();
        return;
    case 14:
        interfere(side, input_take(input, 1));
        return;
    default:
        if (what >> 5 & 1)
            forge(input);
        else if (what >> 6 & 1)
            invent(side, input);
        else if (what >> 7 & 1)
            invent_along(side, input);
    }
}

/* ---- the end ---- */

static void check(void)
{
    bench_check(&bench.sides[0]);
    bench_check(&bench.sides[1]);
}

/* Ends everything, with a wire that loses nothing any more, and receives posted. */
static void come_to_rest(void)
{
    bench_ready(&bench);
    for (unsigned i = 0; i < 2; i++)
        engine_drain(&bench.sides[i].engine, false);
    for (unsigned rounds = 0; rounds < 20000; rounds++) {
        for (unsigned i = 0; i < 2; i++)
            if (bench.sides[i].receives_posted - bench.sides[i].receives_taken < 2)
                bench_post_receive(&bench.sides[i], BENCH_LONGEST + UD_GRH_LENGTH, 1, KEY_INBOX);
        bool moved = carry(&bench.sides[0], 0);
        moved |= carry(&bench.sides[1], 0);
        check();
        if (!moved && !wait())
            break;
    }
}

static bool has_failed(const struct side *side)
{
    return engine_has_failed(&side->engine) || side->send_failures;
}

/* Nothing is left; and when nothing failed, everything was done, once, and in order. */
static void check_rest(const struct side *side)
{
    const struct send_queue *queue = engine_queue((struct engine *)&side->engine);
    require(!engine_has_output(&side->engine));
    if (!has_failed(side))
        require(queue->head == queue->tail);
    if (!bench_is_reliable(&bench) || has_failed(side) || has_failed(side->peer))
        return;
    require(!memcmp(side->peer->target, side->target_model, BENCH_TARGET));
    require(!memcmp(side->peer->counters, side->counter_model, sizeof side->counter_model));
    for (unsigned i = side->delivered; i < side->posted; i++)
        require(!side->works[i].consumes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    if (!bench.sides[0].source)
        bench_make(&bench);
    configure(&input);
    restart();
    while (input.left) {
        step(&input);
        check();
    }
    come_to_rest();
    for (unsigned i = 0; i < 2 && bench.honest; i++)
        check_rest(&bench.sides[i]);
    return 0;
}
