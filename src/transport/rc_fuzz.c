/* Fuzzing of a pair of engines: the bytes are a sequence of posts, packets carried, lost, repeated or invented, and
 * time. Whatever comes, no engine crashes, each work request and each receive ends once and in order, and a pair that
 * met nothing but an unreliable wire comes to rest with everything ended. */
#include <stdlib.h>
#include <string.h>

#include "transport/rig.h"
#include "wire/psn.h"

enum { KEPT = 8, CARRIED_MOST = 2048 };

struct kept {
    struct packet packet;
    struct iovec piece;
    uint8_t bytes[CARRIED_MOST];
    unsigned to; /* which side */
};

struct side {
    struct rig rig;
    uint64_t last_end, last_arrival; /* ids */
    unsigned sends, deliveries;      /* that succeeded */
};

struct fuzz {
    const uint8_t *data;
    size_t left;
    struct side sides[2];
    struct kept kept[KEPT];
    unsigned keeping;
    bool honest; /* only what an unreliable wire and the owners may do */
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static uint32_t take(struct fuzz *fuzz, unsigned bytes)
{
    uint32_t value = 0;
    for (; bytes && fuzz->left; bytes--, fuzz->left--)
        value = value << 8 | *fuzz->data++;
    return value;
}

static void check_ends(struct side *side)
{
    struct rig *rig = &side->rig;
    for (unsigned i = 0; i < rig->ended; i++) {
        require(rig->ends[i].id > side->last_end);
        require((rig->ends[i].status == IBV_WC_SUCCESS) == (rig->ends[i].reason == REASON_NONE));
        side->last_end = rig->ends[i].id;
        side->sends += rig->ends[i].status == IBV_WC_SUCCESS && rig->ends[i].opcode == IBV_WR_SEND;
    }
    for (unsigned i = 0; i < rig->arrived; i++) {
        require(rig->arrivals[i].id > side->last_arrival);
        side->last_arrival = rig->arrivals[i].id;
        side->deliveries +=
            rig->arrivals[i].arrival.status == IBV_WC_SUCCESS && rig->arrivals[i].arrival.opcode == IBV_WC_RECV;
    }
    rig->ended = rig->arrived = rig->raised = 0;
}

static unsigned count_reads(const struct send_queue *queue)
{
    unsigned reads = 0;
    for (uint32_t i = queue->head; i != queue->tail; i++) {
        const struct work *work = send_queue_at(queue, i);
        reads +=
            work->started && (work->opcode == IBV_WR_RDMA_READ || work->opcode == IBV_WR_ATOMIC_WRITE ||
                              work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
    }
    return reads;
}

static void check_requester(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    const struct send_queue *queue = &requester->queue;
    require(queue->next - queue->head <= queue->tail - queue->head);
    require(queue->tail - queue->head <= queue->capacity);
    require(psn_distance(requester->sent_psn, requester->acked_psn) >= 0);
    require(psn_distance(requester->next_psn, requester->sent_psn) >= 0);
    require(!requester->rnr_waiting || requester->deadline != NANOS_NEVER);
    if (rc->failed)
        require(queue->head == queue->tail && requester->deadline == NANOS_NEVER && !rc->responder.receive);
    else
        require(requester->reads == count_reads(queue) && requester->reads <= rc->settings.max_rd_atomic);
}

static void check_responder(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    require(responder->saved_tail - responder->saved_head <= responder->saved_size);
    require(responder->saved_next - responder->saved_head <= responder->saved_tail - responder->saved_head);
    require(responder->saved_size <= sizeof(((struct rig *)0)->saved) / sizeof(struct rc_saved));
    require(responder->received <= rc->settings.max_message);
}

static void check(struct fuzz *fuzz)
{
    for (unsigned i = 0; i < 2; i++) {
        check_requester(&fuzz->sides[i].rig.rc);
        check_responder(&fuzz->sides[i].rig.rc);
        check_ends(&fuzz->sides[i]);
        require(fuzz->sides[i].rig.failures <= 1);
    }
}

static void start(struct fuzz *fuzz)
{
    for (unsigned i = 0; i < 2; i++) {
        struct rig *rig = &fuzz->sides[i].rig;
        rc_start_receiving(&rig->rc, i ? PSN_MASK - 3 : RIG_THEIRS);
        rc_start_transmitting(&rig->rc, i ? RIG_THEIRS : PSN_MASK - 3);
    }
}

static void restart(struct fuzz *fuzz)
{
    for (unsigned i = 0; i < 2; i++) {
        struct side *side = &fuzz->sides[i];
        rc_reset(&side->rig.rc);
        side->rig.failures = 0;
        side->rig.deregistered = false;
        side->rig.taken = side->rig.posted; /* the owner's queue is cleared too */
        side->sends = side->deliveries = 0;
    }
    fuzz->keeping = 0;
    fuzz->honest = true;
    start(fuzz);
}

static void post_work(struct fuzz *fuzz, struct rig *rig)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND,
                                                 IBV_WR_SEND_WITH_IMM,
                                                 IBV_WR_SEND_WITH_INV,
                                                 IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_RDMA_READ,
                                                 IBV_WR_ATOMIC_CMP_AND_SWP,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                 IBV_WR_ATOMIC_WRITE,
                                                 IBV_WR_LOCAL_INV,
                                                 IBV_WR_BIND_MW,
                                                 IBV_WR_TSO};
    uint32_t wish = take(fuzz, 1);
    struct rig_work work = {.opcode = opcodes[wish % 12], .length = take(fuzz, 2) % 3000, .rkey = KEY_ALL};
    work.flags = (wish & 16 ? IBV_SEND_FENCE : 0) | (wish & 32 ? IBV_SEND_SIGNALED : 0);
    work.remote = (uint64_t)take(fuzz, 1) * 8;
    work.immediate = KEY_ALL;
    work.sge_count = wish % 3 + 1;
    if (wish > 250)
        work.lkey = work.rkey = KEY_NOTHING;
    if (wish & 64 && work.length <= RIG_INLINE)
        work.flags |= IBV_SEND_INLINE;
    if (work.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && work.length > 8)
        work.length = 8;
    if (work.opcode == IBV_WR_RDMA_READ || work.length == 8)
        work.flags &= ~IBV_SEND_INLINE;
    rig_post(rig, work);
}

static void post_a_receive(struct fuzz *fuzz, struct rig *rig)
{
    uint32_t wish = take(fuzz, 1);
    if (rig->posted - rig->taken < RIG_QUEUE - 1) /* one may be open */
        rig_post_receive(rig, 0x8000, wish < 240 ? 3000 : wish, wish == 255 ? KEY_NOTHING : KEY_ALL);
}

/* What it would send must lie in its memory or in its queue (inline data). */
static bool transmit(struct rig *rig)
{
    bool ready = rc_has_output(&rig->rc);
    if (!rig_transmit(rig))
        return false;
    require(ready);
    uint64_t length = 0;
    for (uint32_t i = 0; i < rig->out.payload.count; i++) {
        const uint8_t *base = rig->out.payload.pieces[i].iov_base;
        require((base >= rig->memory && base < rig->memory + RIG_MEMORY) ||
                (base >= rig->queue && base < rig->queue + sizeof(rig->queue)));
        length += rig->out.payload.pieces[i].iov_len;
    }
    require(length == rig->out.payload.length);
    return true;
}

static void keep(struct fuzz *fuzz, const struct rig *from, unsigned to)
{
    struct kept *kept = &fuzz->kept[fuzz->keeping++ % KEPT];
    if (from->out.payload.length > CARRIED_MOST) {
        fuzz->keeping--;
        return;
    }
    memcpy(kept->bytes, from->carried, from->out.payload.length);
    kept->packet = from->out;
    kept->to = to;
}

static void replay(struct fuzz *fuzz)
{
    unsigned have = fuzz->keeping < KEPT ? fuzz->keeping : KEPT;
    if (!have)
        return;
    struct kept *kept = &fuzz->kept[take(fuzz, 1) % have];
    struct rig *to = &fuzz->sides[kept->to].rig;
    kept->piece = (struct iovec){kept->bytes, kept->packet.payload.length};
    kept->packet.payload.pieces = &kept->piece;
    kept->packet.payload.count = kept->packet.payload.length > 0;
    rc_receive(&to->rc, &kept->packet, to->now);
}

/* One packet of one side arrives, is lost, or is kept to arrive later, and perhaps again. */
static bool carry(struct fuzz *fuzz, unsigned from, unsigned fate)
{
    struct rig *sender = &fuzz->sides[from].rig, *receiver = &fuzz->sides[!from].rig;
    if (!transmit(sender))
        return false;
    if (fate & 2)
        keep(fuzz, sender, !from);
    if (!(fate & 1))
        rc_receive(&receiver->rc, &sender->out, receiver->now);
    return true;
}

static void invent(struct fuzz *fuzz, struct rig *rig)
{
    struct rig_packet packet = {.bytes = take(fuzz, 2) % 700, .broken = take(fuzz, 1) > 250};
    uint32_t basis = take(fuzz, 1) & 1 ? rig->rc.responder.expected_psn : rig->rc.requester.acked_psn;
    uint32_t operation = take(fuzz, 1), psn = psn_add(basis, take(fuzz, 1) - 100);
    packet.packet.syndrome = take(fuzz, 1);
    packet.packet.address = take(fuzz, 2);
    packet.packet.length = take(fuzz, 1) & 1 ? packet.bytes : take(fuzz, 4);
    packet.packet.rkey = take(fuzz, 1) & 7 ? KEY_ALL : KEY_NOTHING;
    packet.packet.invalidate_key = packet.packet.rkey;
    packet.packet.ack_requested = operation & 128;
    fuzz->honest = false;
    rig_arrive(rig, operation & 31, psn, packet);
}

/* Time passes for both up to the next deadline. */
static bool wait(struct fuzz *fuzz)
{
    nanos first = rc_deadline(&fuzz->sides[0].rig.rc), second = rc_deadline(&fuzz->sides[1].rig.rc);
    nanos next = first < second ? first : second;
    if (next == NANOS_NEVER)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        fuzz->sides[i].rig.now = next;
        rc_expire(&fuzz->sides[i].rig.rc, next);
    }
    return true;
}

static void interfere(struct fuzz *fuzz, struct rig *rig, unsigned how)
{
    switch (how % 8) {
    case 0:
        rc_drain(&rig->rc, how & 8);
        return;
    case 1:
        rc_flush(&rig->rc);
        return;
    case 2:
        rig->deregistered = how & 8;
        return;
    case 3:
        rc_postpone(&rig->rc, rig->now);
        return;
    case 4:
        restart(fuzz);
        return;
    case 5:
        rig->rc.settings.max_dest_rd_atomic = 4 + how / 32; /* not below what the peer may use */
        return;
    case 6:
        rig->rc.settings.rnr_retry = how & 8 ? 7 : 2;
        return;
    default:
        rig->local_status = how & 8 && how & 16 ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
    }
}

static void step(struct fuzz *fuzz)
{
    unsigned what = take(fuzz, 1), from = what & 1;
    struct rig *rig = &fuzz->sides[from].rig;
    switch (what >> 1 & 15) {
    case 0 ... 3:
        post_work(fuzz, rig);
        return;
    case 4 ... 5:
        post_a_receive(fuzz, rig);
        return;
    case 6 ... 10:
        carry(fuzz, from, 0);
        return;
    case 11:
        carry(fuzz, from, what >> 5 & 3);
        return;
    case 12:
        replay(fuzz);
        return;
    case 13:
        wait(fuzz);
        return;
    case 14:
        interfere(fuzz, rig, take(fuzz, 1));
        return;
    default:
        if (what & 0x80)
            invent(fuzz, rig);
    }
}

/* With a wire that loses nothing any more and receives posted, everything ends. */
static void come_to_rest(struct fuzz *fuzz)
{
    for (unsigned i = 0; i < 2; i++)
        rc_drain(&fuzz->sides[i].rig.rc, false);
    for (unsigned rounds = 0; rounds < 20000; rounds++) {
        for (unsigned i = 0; i < 2; i++)
            if (fuzz->sides[i].rig.posted - fuzz->sides[i].rig.taken < 4)
                rig_post_receive(&fuzz->sides[i].rig, 0x8000, 3000, KEY_ALL);
        bool moved = carry(fuzz, 0, 0);
        moved |= carry(fuzz, 1, 0);
        check(fuzz);
        if (!moved && !wait(fuzz))
            break;
    }
}

static void check_rest(const struct fuzz *fuzz)
{
    const struct side *a = &fuzz->sides[0], *b = &fuzz->sides[1];
    for (unsigned i = 0; i < 2; i++) {
        const struct send_queue *queue = &fuzz->sides[i].rig.rc.requester.queue;
        require(queue->head == queue->tail);
        require(!rc_has_output(&fuzz->sides[i].rig.rc));
    }
    if (a->rig.rc.failed || b->rig.rc.failed)
        return;
    require(a->sends <= b->deliveries && b->sends <= a->deliveries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz *fuzz;
    if (!fuzz)
        fuzz = malloc(sizeof(*fuzz));
    fuzz->data = data;
    fuzz->left = size;
    fuzz->keeping = 0;
    fuzz->honest = true;
    for (unsigned i = 0; i < 2; i++) {
        struct side *side = &fuzz->sides[i];
        rig_make(&side->rig);
        side->last_end = side->last_arrival = 0;
        side->sends = side->deliveries = 0;
    }
    start(fuzz);
    while (fuzz->left) {
        step(fuzz);
        check(fuzz);
    }
    come_to_rest(fuzz);
    if (fuzz->honest)
        check_rest(fuzz);
    return 0;
}
