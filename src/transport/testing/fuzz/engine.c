/* The engines of a bench, and what no packet may do to them. */
#include <string.h>

#include "transport/pkey.h"
#include "transport/testing/fuzz/bench.h"
#include "wire/psn.h"
#include "wire/wire.h"

/* ---- making ---- */

static void make_side(struct side *side, unsigned index)
{
    side->owner.operations = &bench_operations;
    side->source = malloc(BENCH_SOURCE);
    side->target = malloc(BENCH_TARGET);
    side->inbox = malloc(BENCH_QUEUE * BENCH_SLOT);
    side->results = malloc(BENCH_QUEUE * BENCH_SLOT);
    side->counters_block = malloc(BENCH_COUNTERS * 8 + 4);
    require(side->source && side->target && side->inbox && side->results && side->counters_block);
    for (unsigned i = 0; i < BENCH_SOURCE; i++)
        side->source[i] = (uint8_t)(i * 31 >> 3 ^ i >> 8 ^ index << 7);
}

void bench_make(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    for (unsigned i = 0; i < 2; i++) {
        bench->sides[i].bench = bench;
        bench->sides[i].peer = &bench->sides[!i];
        make_side(&bench->sides[i], i);
    }
}

static void forget(struct side *side)
{
    memset(side->target, 0, BENCH_TARGET);
    memset(side->counters_block, 0, BENCH_COUNTERS * 8 + 4);
    side->counters = side->counters_block + (side->bench->unaligned ? 4 : 0);
    memset(side->target_model, 0, BENCH_TARGET);
    memset(side->counter_model, 0, sizeof side->counter_model);
    side->posted = side->ended = side->delivered = 0;
    side->receives_posted = side->receives_taken = side->receives_ended = 0;
    side->excuses = side->failures = side->send_failures = side->drops = 0;
    side->deregistered = side->bind_fails = false;
    side->granting = 0;
}

void bench_reset(struct bench *bench)
{
    for (unsigned i = 0; i < 2; i++) {
        struct side *side = &bench->sides[i];
        engine_reset(&side->engine);
        side->watched = NANOS_NEVER;
        forget(side);
    }
}

static uint32_t first_psn(const struct side *side)
{
    return side == side->bench->sides ? side->bench->first_psn : 2000;
}

static void start_transmitting(struct side *side)
{
    if (!engine_is_transmitting(&side->engine))
        engine_start_transmitting(&side->engine, first_psn(side));
}

void bench_start(struct bench *bench)
{
    for (unsigned i = 0; i < 2; i++) {
        engine_start_receiving(&bench->sides[i].engine, first_psn(bench->sides[i].peer));
        if (!i || !bench->later)
            start_transmitting(&bench->sides[i]);
    }
}

void bench_ready(struct bench *bench)
{
    start_transmitting(&bench->sides[1]);
}

/* ---- sending ---- */

static bool lies_in(const struct iovec *piece, const void *zone, size_t size)
{
    const uint8_t *from = piece->iov_base;
    return from >= (const uint8_t *)zone && piece->iov_len <= size &&
           from - (const uint8_t *)zone <= (ptrdiff_t)(size - piece->iov_len);
}

/* Returns true if the request that was accepted with this PSN named the bytes; no others may be read, also by repeats
 * of it (9.4.4). */
static bool was_granted(const struct side *side, uint32_t psn, const struct iovec *piece)
{
    for (unsigned i = 0; i < side->granting && i < BENCH_GRANTED; i++) {
        const struct granted *granted = &side->granted[i];
        uint32_t index = psn_add(psn, -granted->first_psn), at = index * BENCH_SEGMENT;
        if (index < granted->packets && piece->iov_base == granted->memory + at &&
            piece->iov_len <= granted->length - at && piece->iov_len <= BENCH_SEGMENT)
            return true;
    }
    return false;
}

static const uint8_t *zone(const struct side *side, uint32_t key)
{
    return key == KEY_SOURCE ? side->source : side->target;
}

static void grant(struct side *side, const struct packet *packet)
{
    uint32_t length = packet->length, packets = length ? (length - 1) / BENCH_SEGMENT + 1 : 1;
    side->granted[side->granting++ % BENCH_GRANTED] =
        (struct granted){packet->psn, packets, zone(side, packet->rkey) + packet->address, length};
}

/* Checks that requests carry the data of their work, and answers the requested data. */
static void check_origin(const struct side *side, const struct packet *out, const struct iovec *piece)
{
    if (op_find(out->opcode)->flags & OP_RESPONSE)
        require(was_granted(side, out->psn, piece));
    else
        require(lies_in(piece, side->source, BENCH_SOURCE) || lies_in(piece, side->queue, sizeof side->queue));
}

/* A link that takes an ACK along asks for messages of one packet first. */
static bool transmit(struct side *side, struct packet *out, struct iovec *pieces, uint32_t *along)
{
    struct engine *engine = &side->engine;
    bool single = side->bench->service == SERVICE_RC && engine_settings_of(engine)->acks_along &&
                  engine_transmit_single(engine, out, pieces, side->bench->now);
    *along = single ? engine_take_along(engine) : 0;
    return single || engine_transmit(&side->engine, out, pieces, side->bench->now);
}

bool bench_transmit(struct side *side, struct packet *packet, uint8_t *bytes, uint32_t *along)
{
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    struct packet out;
    uint8_t headers[WIRE_HEADERS_MAX];
    unsigned length, pad;
    memset(&out, 0xa5, sizeof out); /* the engine writes what the operation has, and the payload */
    bool ready = engine_has_output(&side->engine);
    if (!transmit(side, &out, pieces, along))
        return false;
    require(ready && op_find(out.opcode) && out.payload.length <= BENCH_LONGEST);
    require(out.payload.count <= PAYLOAD_PIECES_MAX && !out.payload.pull);
    uint32_t at = 0;
    for (uint32_t i = 0; i < out.payload.count; at += out.payload.pieces[i++].iov_len) {
        require(out.payload.pieces[i].iov_len <= out.payload.length - at);
        check_origin(side, &out, &out.payload.pieces[i]);
        memcpy(bytes + at, out.payload.pieces[i].iov_base, out.payload.pieces[i].iov_len);
    }
    require(at == out.payload.length);
    require(wire_decode(headers, wire_encode(&out, headers), packet, &length, &pad) == WIRE_FINE);
    require(wire_check_payload(packet, at) == WIRE_FINE && pad == (-at & 3));
    packet->payload.length = at;
    return true;
}

/* ---- receiving ---- */

/* The state that is compared before and after. */
struct snapshot {
    struct rc rc;
    unsigned ended, taken, arrived, writable, calls, drops;
};

static void take_snapshot(const struct side *side, struct snapshot *snapshot)
{
    snapshot->rc = side->engine.rc;
    snapshot->ended = side->ended;
    snapshot->taken = side->receives_taken;
    snapshot->arrived = side->receives_ended;
    snapshot->writable = side->writable;
    snapshot->calls = side->calls;
    snapshot->drops = side->drops;
}

static bool is_alien(const struct rc *rc, const struct packet *packet)
{
    return op_service(packet->opcode) != rc->settings.service || !rc->receiving || rc->failed ||
           !pkey_matches(packet->pkey, rc->settings.pkey);
}

/* Nothing was written, taken or ended, and the queue pair has not failed. */
static void require_calm(const struct side *side, const struct snapshot *before)
{
    require(side->engine.rc.failed == before->rc.failed);
    require(side->ended == before->ended && side->receives_taken == before->taken);
    require(side->receives_ended == before->arrived && side->writable == before->writable);
}

/* A request outside the window, earlier or later, changes at most the answers that are owed to the peer. */
static void judge_request(const struct side *side, const struct snapshot *before, const struct packet *packet)
{
    const struct responder *now = &side->engine.rc.responder, *then = &before->rc.responder;
    if (!side->engine.rc.failed)
        require(!memcmp(&side->engine.rc.requester, &before->rc.requester, sizeof side->engine.rc.requester));
    if (packet->psn != then->expected_psn) {
        require_calm(side, before);
        require(now->expected_psn == then->expected_psn && now->msn == then->msn && now->open == then->open);
        require(now->received == then->received && now->receive == then->receive);
    } else if (side->drops != before->drops) {
        require(now->expected_psn == then->expected_psn && now->msn == then->msn);
    }
}

/* An answer to nothing that is outstanding changes nothing; other answers acknowledge no more than was sent. */
static void judge_response(const struct side *side, const struct snapshot *before, const struct packet *packet)
{
    const struct requester *now = &side->engine.rc.requester, *then = &before->rc.requester;
    bool outstanding = psn_distance(packet->psn, then->acked_psn) >= 0 && psn_distance(packet->psn, then->sent_psn) < 0;
    if (!side->engine.rc.failed)
        require(!memcmp(&side->engine.rc.responder, &before->rc.responder, sizeof side->engine.rc.responder));
    if (!outstanding) {
        require_calm(side, before);
        require(!memcmp(now, then, sizeof *now));
    } else if (!side->engine.rc.failed) {
        require(psn_distance(now->acked_psn, then->acked_psn) >= 0);
        require(psn_distance(now->acked_psn, psn_add(packet->psn, 1)) <= 0);
    }
}

/* A notification of congestion only makes the window smaller. */
static void judge_notification(const struct side *side, const struct snapshot *before)
{
    struct rc now = side->engine.rc;
    require(now.requester.congestion.window <= before->rc.requester.congestion.window);
    now.requester.congestion = before->rc.requester.congestion;
    require(!memcmp(&now, &before->rc, sizeof now) && side->calls == before->calls);
}

static void receive_reliably(struct side *side, const struct packet *packet)
{
    struct snapshot before;
    take_snapshot(side, &before);
    engine_receive(&side->engine, packet, side->bench->now);
    if (op_service(packet->opcode) == SERVICE_CNP) {
        judge_notification(side, &before);
    } else if (is_alien(&before.rc, packet)) {
        require(!memcmp(&side->engine.rc, &before.rc, sizeof before.rc));
        require(side->calls == before.calls + 1 && side->drops == before.drops + 1);
    } else if (op_find(packet->opcode)->flags & OP_RESPONSE) {
        judge_response(side, &before, packet);
    } else {
        judge_request(side, &before, packet);
        if (op_find(packet->opcode)->flags & OP_READ &&
            side->engine.rc.responder.expected_psn != before.rc.responder.expected_psn)
            grant(side, packet);
    }
}

/* Unreliable services drop what is wrong with a packet, and nothing else. */
static void receive_unreliably(struct side *side, const struct packet *packet)
{
    bool qkey = side->bench->service == SERVICE_UC || packet->qkey == BENCH_QKEY;
    unsigned drops = side->drops, calls = side->calls;
    bool failed = engine_has_failed(&side->engine);
    engine_receive(&side->engine, packet, side->bench->now);
    bool alien = op_service(packet->opcode) != side->bench->service || !pkey_matches(packet->pkey, BENCH_PKEY) || !qkey;
    if (alien || failed)
        require(side->drops == drops + 1 && side->calls == calls + 1 && engine_has_failed(&side->engine) == failed);
    if (!(side->excuses & (EXCUSE_SHORT_RECEIVE | EXCUSE_RECEIVE_KEY | EXCUSE_DEREGISTERED)))
        require(engine_has_failed(&side->engine) == failed); /* a peer alone can't break it */
}

void bench_receive(struct side *side, const struct packet *packet)
{
    if (bench_is_reliable(side->bench))
        receive_reliably(side, packet);
    else
        receive_unreliably(side, packet);
}

/* ---- at any time ---- */

BENCH_UNTRACED static unsigned count_reads(const struct send_queue *queue)
{
    unsigned reads = 0;
    for (uint32_t i = queue->head; i != queue->tail; i++) {
        const struct send_wqe *work = send_queue_at(queue, i);
        reads += work->started && (work->opcode == IBV_WR_RDMA_READ || work->opcode == IBV_WR_ATOMIC_WRITE ||
                                   work->opcode == NEWER_WR_FLUSH || work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                                   work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
    }
    return reads;
}

BENCH_UNTRACED static void check_requester(const struct engine *engine)
{
    const struct rc *rc = &engine->rc;
    const struct requester *requester = &rc->requester;
    const struct send_queue *queue = &requester->queue;
    require(psn_distance(requester->sent_psn, requester->acked_psn) >= 0);
    require(psn_distance(requester->next_psn, requester->sent_psn) >= 0);
    require(!requester->rnr_waiting || requester->deadline != NANOS_NEVER);
    require(!rc->transmitting ||
            (requester->congestion.window >= 1 && requester->congestion.window <= rc->settings.window));
    if (rc->failed) {
        require(queue->head == queue->tail && engine_deadline(engine) == NANOS_NEVER && !engine_open_receive(engine));
        return;
    }
    require(requester->reads == count_reads(queue) && requester->reads <= rc->settings.max_rd_atomic);
    bool waiting = requester->acked_psn != requester->sent_psn;
    require(!waiting || requester->deadline != NANOS_NEVER || engine_has_output(engine)); /* else it waits for ever */
}

BENCH_UNTRACED static void check_responder(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    require(responder->saved_tail - responder->saved_head <= responder->saved_size);
    require(responder->saved_next - responder->saved_head <= responder->saved_tail - responder->saved_head);
    require(responder->saved_size <= responder->saved_most && responder->saved_most <= BENCH_SAVED);
    require(responder->received <= rc->settings.max_message);
}

BENCH_UNTRACED void bench_check(const struct side *side)
{
    const struct send_queue *queue = engine_queue((struct engine *)&side->engine);
    require(queue->next - queue->head <= queue->tail - queue->head);
    require(queue->tail - queue->head <= queue->capacity);
    require(side->posted - side->ended == queue->tail - queue->head);
    if (!bench_is_reliable(side->bench))
        return;
    check_requester(&side->engine);
    require(engine_deadline(&side->engine) >= side->watched); /* or its owner would never look */
    check_responder(&side->engine.rc);
}
