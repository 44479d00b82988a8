/* Every byte arrives and no other is touched: operations, types, sizes and SGE lists as rows. */
#include <stdio.h>
#include <string.h>

#include "pair.h"

/* ThreadSanitizer gets one of a size and its neighbours, which differ by bounds only: that is no matter of threads. */
#if defined(__SANITIZE_THREAD__)
static const uint32_t sizes[] = {0, 1, 8, 64, 65, 1024, 4096, 4097, 16385, 65535, 65536, 1 << 20};
enum { LONGEST = 1 << 20 };
#else
static const uint32_t sizes[] = {
    0,    1,    7,     8,     63,    64,    65,    1023,  1024,  4095,    4096,          4097,   8191,
    8192, 8193, 16383, 16384, 16385, 24577, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, 4 << 20};
enum { LONGEST = 4 << 20 };
#endif
enum { SPACE = LONGEST + (64 << 10), GUARD = 64, FROM = 4096 + 3, TO = 8192 + 5, GRH = 40, PIECES = 4 };

struct row {
    enum ibv_qp_type type;
    enum ibv_wr_opcode opcode;
    uint32_t size;
    int pieces;
};

static const char *const opcode_names[] = {
    [IBV_WR_SEND] = "SEND",        [IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
    [IBV_WR_RDMA_WRITE] = "WRITE", [IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE with immediate",
    [IBV_WR_RDMA_READ] = "READ",
};
static const char *const type_names[] = {[IBV_QPT_RC] = "RC", [IBV_QPT_UC] = "UC", [IBV_QPT_UD] = "UD"};

/* The same bytes as a list of pieces of uneven lengths, where the second is empty. */
static int split(const struct end *end, uint64_t offset, uint32_t length, int pieces, struct ibv_sge *list)
{
    uint32_t first = pieces > 1 ? length / 3 : length, third = pieces > 1 ? (length - first) / 2 : 0;
    list[0] = end_sge(end, offset, first);
    if (pieces == 1)
        return 1;
    list[1] = end_sge(end, offset, 0);
    list[2] = end_sge(end, offset + first, third);
    list[3] = end_sge(end, offset + first + third, length - first - third);
    return PIECES;
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void check_target(struct end *end, const struct row *row, uint64_t seed, uint64_t at)
{
    static const uint8_t guard = 0xa5;
    uint64_t memory = end->memory + at;
    EXPECT(remote_compare(end->remote, memory, row->size, seed, 0), ==, -1);
    for (uint64_t i = 0; i < GUARD; i += 8) {
        uint64_t before = remote_peek(end->remote, memory - GUARD + i),
                 after = remote_peek(end->remote, memory + row->size + i);
        EXPECT(before, ==, 0x0101010101010101ull * guard);
        EXPECT(after, ==, 0x0101010101010101ull * guard);
    }
}

static void post_target(struct end *end, const struct row *row, uint32_t extra)
{
    struct receive receive = end_receive(end, 2, TO, row->size);
    receive.wr.num_sge = split(end, TO, row->size, row->pieces, receive.sge);
    if (row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        receive.wr.num_sge = 0;
    if (extra) { /* the GRH is written where it does not touch what is compared */
        memmove(receive.sge + 1, receive.sge, (size_t)receive.wr.num_sge * sizeof *receive.sge);
        receive.sge[0] = end_sge(end, 0, extra);
        receive.wr.num_sge++;
    }
    end_post_receive(end, receive);
}

static void check_received(struct end *end, const struct row *row, uint32_t extra)
{
    struct ibv_wc wc = end_received(end);
    bool immediate = row->opcode != IBV_WR_SEND;
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wr_id, ==, 2);
    EXPECT(wc.byte_len, ==, row->size + extra);
    EXPECT(wc.opcode, ==, row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
    EXPECT(!!(wc.wc_flags & IBV_WC_WITH_IMM), ==, immediate);
    if (immediate)
        EXPECT(wc.imm_data, ==, 0x78563412);
}

static void data_arrives(const void *argument)
{
    const struct row *row = argument;
    struct wishes wishes = pair_wishes(row->type);
    uint32_t extra = row->type == IBV_QPT_UD ? GRH : 0;
    wishes.length = SPACE;
    wishes.cap.max_recv_sge = wishes.cap.max_send_sge = PIECES + 1;
    struct pair pair = pair_open_as(wishes);
    bool reads = row->opcode == IBV_WR_RDMA_READ;
    struct end *source = reads ? &pair.far : &pair.near, *target = reads ? &pair.near : &pair.far;
    uint64_t seed = row->size * 31 + (uint64_t)row->pieces;
    remote_set(target->remote, target->memory + TO - GUARD, row->size + 2 * GUARD, 0xa5);
    remote_fill(source->remote, source->memory + FROM, row->size, seed);
    if (takes_receive(row->opcode))
        post_target(target, row, extra);
    struct send send = end_send(&pair.near, &pair.far, row->opcode, 1, reads ? TO : FROM, row->size);
    send.wr.num_sge = split(&pair.near, reads ? TO : FROM, row->size, row->pieces, send.sge);
    send.wr.imm_data = 0x78563412;
    if (row->type != IBV_QPT_UD)
        send.wr.wr.rdma.remote_addr = pair.far.memory + (reads ? FROM : TO);
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    if (takes_receive(row->opcode))
        check_received(target, row, extra);
    else if (row->type == IBV_QPT_UC)
        pair_ping(&pair, &pair.near, &pair.far); /* what was sent before has arrived then */
    check_target(target, row, seed, TO);
}

/* A receiver that sees the SEND sees all of the WRITE before it, whichever way each of them travels. */
static void a_send_comes_after_the_write_before_it(const void *argument)
{
    const struct row *row = argument;
    struct wishes wishes = pair_wishes(row->type);
    wishes.length = SPACE;
    struct pair pair = pair_open_as(wishes);
    struct end *near = &pair.near, *far = &pair.far;
    for (uint64_t round = 1; round <= 5; round++) {
        struct send both[2] = {end_send(near, far, IBV_WR_RDMA_WRITE, 1, FROM, row->size),
                               end_send(near, far, IBV_WR_SEND, 2, 0, 1)};
        remote_fill(near->remote, near->memory + FROM, row->size, row->size + round);
        end_post_receive(far, end_receive(far, round, 0, 8));
        if (row->pieces) { /* inline */
            both[1].wr.send_flags |= IBV_SEND_INLINE;
            if (row->size <= wishes.cap.max_inline_data)
                both[0].wr.send_flags |= IBV_SEND_INLINE;
        }
        EXPECT(remote_post_send(near->remote, near->qp, both, 2, NULL), ==, 0);
        end_expect_received(far, round, IBV_WC_SUCCESS, 1);
        EXPECT(remote_compare(far->remote, far->memory + FROM, row->size, row->size + round, 0), ==, -1);
        end_expect_sent(near, 1, IBV_WC_SUCCESS);
        end_expect_sent(near, 2, IBV_WC_SUCCESS);
    }
}

static void run_row(enum ibv_qp_type type, enum ibv_wr_opcode opcode, uint32_t size, int pieces)
{
    char name[128];
    snprintf(name, sizeof name, "%s %s of %u bytes in %d piece%s", type_names[type], opcode_names[opcode], size, pieces,
             pieces > 1 ? "s" : "");
    harness_run(name, data_arrives, &(struct row){type, opcode, size, pieces});
}

static void run_order(enum ibv_qp_type type, uint32_t size, int in_line)
{
    char name[128];
    snprintf(name, sizeof name, "%s SEND%s comes after the WRITE of %u bytes before it", type_names[type],
             in_line ? " inline" : "", size);
    harness_run(name, a_send_comes_after_the_write_before_it, &(struct row){type, 0, size, in_line});
}

static void all(void)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM,
                                                 IBV_WR_RDMA_WRITE_WITH_IMM};
    for (size_t size = 0; size < COUNT(sizes); size++)
        for (int pieces = 1; pieces <= PIECES; pieces += PIECES - 1) {
            for (size_t opcode = 0; opcode < COUNT(opcodes); opcode++) {
                run_row(IBV_QPT_RC, opcodes[opcode], sizes[size], pieces);
                if (opcodes[opcode] != IBV_WR_RDMA_READ && harness_promises(IBV_QPT_UC))
                    run_row(IBV_QPT_UC, opcodes[opcode], sizes[size], pieces);
            }
            if (sizes[size] <= 4096 && harness_promises(IBV_QPT_UD))
                run_row(IBV_QPT_UD, pieces > 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, sizes[size], pieces);
            run_order(IBV_QPT_RC, sizes[size], pieces > 1);
            if (harness_promises(IBV_QPT_UC))
                run_order(IBV_QPT_UC, sizes[size], pieces > 1);
        }
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
