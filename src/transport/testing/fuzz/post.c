/* The work that programs post, with a mistake now and then. */
#include <string.h>

#include "transport/testing/fuzz/bench.h"

static const uint8_t opcodes[] = {
    IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
    IBV_WR_SEND_WITH_INV,
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_READ,
    IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_LOCAL_INV,
    IBV_WR_ATOMIC_WRITE,
    IBV_WR_RDMA_READ,
    IBV_WR_SEND,
    IBV_WR_BIND_MW,
    IBV_WR_RDMA_WRITE,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_TSO,
};

static bool is_atomic(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Prepares the place of an answer, which only this work uses, and marks its end. */
static void prepare_result(struct side *side, struct send_wqe *work, struct entry *entry)
{
    uint32_t slot = side->posted % BENCH_QUEUE * BENCH_SLOT;
    entry->result = side->results + slot;
    memset(entry->result + work->length, 0xa5, BENCH_GUARD);
    work->sge[0] = (struct ibv_sge){slot, work->length, KEY_RESULTS};
}

/* Puts the data into one to three elements, or into the work itself. */
static void prepare_data(struct side *side, struct send_wqe *work, const struct entry *entry)
{
    if (work->flags & IBV_SEND_INLINE) {
        memcpy(work->inline_data, side->source + entry->at, work->length);
        work->sge_count = 0;
        return;
    }
    uint32_t at = entry->at, part = work->length / work->sge_count;
    for (uint32_t i = 0; i < work->sge_count; i++, at += part)
        work->sge[i] = (struct ibv_sge){at, i + 1 < work->sge_count ? part : entry->at + work->length - at, KEY_SOURCE};
}

/* Mistakes of the program, one of sixteen. */
static void spoil(struct side *side, struct send_wqe *work, struct entry *entry, uint32_t how)
{
    bool unreliable = !bench_is_reliable(side->bench);
    entry->excuses |= work->opcode == IBV_WR_TSO || unreliable || !engine_settings_of(&side->engine)->max_rd_atomic
                          ? EXCUSE_UNSUPPORTED
                          : 0;
    entry->excuses |= side->bench->service == SERVICE_UD ? EXCUSE_LOCAL_LENGTH : 0; /* it takes no more than a packet */
    switch (how & 15) {
    case 0:
        if (work->sge_count)
            work->sge[work->sge_count - 1].lkey = KEY_NOBODY;
        entry->excuses |= EXCUSE_LOCAL_KEY;
        break;
    case 1:
        work->rkey = work->immediate = entry->immediate = KEY_NOBODY;
        side->excuses |= EXCUSE_REMOTE_KEY;
        break;
    case 2:
        work->remote_address += 3;
        side->excuses |= EXCUSE_MISALIGNED | EXCUSE_REMOTE_KEY;
        break;
    case 3:
        work->remote_srq = 3;
        work->remote_qkey++;
        side->excuses |= EXCUSE_SRQ;
        break;
    case 4:
        work->remote_address = BENCH_TARGET - 4;
        side->excuses |= EXCUSE_REMOTE_KEY | EXCUSE_MISALIGNED;
        break;
    default:
        break;
    }
}

static uint32_t key_of(const struct send_wqe *work, uint32_t wish)
{
    if (is_atomic(work))
        return KEY_COUNTERS;
    return work->opcode == IBV_WR_RDMA_READ && wish & 1 ? KEY_SOURCE : KEY_TARGET;
}

static void fill(struct side *side, struct send_wqe *work, struct entry *entry, struct input *input)
{
    uint32_t wish = input_take(input, 1), more = input_take(input, 1), length = input_take(input, 2);
    work->opcode = opcodes[wish & 15];
    work->flags = (wish & 16 ? IBV_SEND_FENCE : 0) | (wish & 32 ? IBV_SEND_SOLICITED : 0) | IBV_SEND_SIGNALED;
    work->length = length % (BENCH_LONGEST + 1);
    if (more == 255)
        work->length = BENCH_TOO_LONG;
    if (is_atomic(work) || work->opcode == IBV_WR_ATOMIC_WRITE)
        work->length = 8;
    if (wish & 64 && work->length <= BENCH_INLINE && !is_atomic(work) && work->opcode != IBV_WR_RDMA_READ)
        work->flags |= IBV_SEND_INLINE;
    work->sge_count = is_atomic(work) || work->opcode == IBV_WR_RDMA_READ ? 1 : more % BENCH_WORST_SGE + 1;
    work->remote_address = more * 8 % (is_atomic(work) ? BENCH_COUNTERS * 8u : 1024u);
    work->rkey = key_of(work, wish >> 7);
    work->immediate = KEY_WINDOW;
    work->remote_srq = more % 2 + 1;
    work->remote_qp = 0x22;
    work->remote_qkey = BENCH_QKEY;
    work->compare_or_add = more % 4;
    work->swap = more;
    *entry = (struct entry){.opcode = work->opcode, .length = work->length, .at = more * 4, .immediate = KEY_WINDOW};
    entry->excuses = work->length == BENCH_TOO_LONG ? EXCUSE_LOCAL_LENGTH : 0;
    if (is_atomic(work) || work->opcode == IBV_WR_RDMA_READ)
        prepare_result(side, work, entry);
    else
        prepare_data(side, work, entry);
    spoil(side, work, entry, wish & 128 ? input_take(input, 1) : 15);
}

void bench_post(struct side *side, struct input *input)
{
    struct send_wqe *work = send_queue_reserve(engine_queue(&side->engine));
    if (!work || side->posted == BENCH_WORKS)
        return;
    memset(work, 0, sizeof *work);
    work->id = side->posted + 1;
    fill(side, work, &side->works[side->posted], input);
    bench_expect(side, work);
    side->posted++;
    send_queue_commit(engine_queue(&side->engine));
    engine_posted(&side->engine);
}

void bench_post_receive(struct side *side, uint32_t size, uint32_t count, uint32_t lkey)
{
    uint32_t slot = side->receives_posted % BENCH_QUEUE;
    if (side->receives_posted - side->receives_ended == BENCH_QUEUE)
        return;
    struct posted_receive *posted = &side->receives[slot];
    uint32_t at = slot * BENCH_SLOT, part = size / count;
    posted->place = side->inbox + at;
    posted->size = size;
    posted->receive = (struct recv_wqe){.id = side->receives_posted++, .sge_count = count, .sge = posted->sge};
    for (uint32_t i = 0; i < count; i++)
        posted->sge[i] = (struct ibv_sge){at + i * part, i + 1 < count ? part : size - i * part, lkey};
    memset(posted->place + size, 0xa5, BENCH_GUARD);
    if (bench_is_reliable(side->bench) && size % 3 == 1) { /* as of a queue that matches tags */
        posted->receive.skip = size % 16;
        posted->receive.limit = size / 4;
    }
    if (lkey != KEY_INBOX)
        side->excuses |= EXCUSE_RECEIVE_KEY;
    if (size < BENCH_LONGEST + UD_GRH_LENGTH)
        side->excuses |= EXCUSE_SHORT_RECEIVE;
}

void bench_post_a_receive(struct side *side, struct input *input)
{
    uint32_t wish = input_take(input, 1), longest = BENCH_LONGEST + UD_GRH_LENGTH;
    bench_post_receive(side,
                       wish < 200   ? longest
                       : wish < 240 ? longest - wish % 16
                                    : (wish & 15) * 60,
                       wish % BENCH_WORST_SGE + 1, wish == 255 ? KEY_SOURCE : KEY_INBOX);
}
