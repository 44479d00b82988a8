#include "builder_fixture.h"

#include <stdlib.h>
#include <string.h>

struct ibv_qp *bench_make_qp(struct bench *bench, enum ibv_qp_type type, uint64_t operations)
{
    struct ibv_qp_init_attr_ex init = {
        .qp_type = type,
        .send_cq = bench->sent,
        .recv_cq = bench->received,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = SENDS, .max_send_sge = 2, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = bench->pd,
        .send_ops_flags = operations,
    };
    init.cap.max_inline_data = INLINE;
    if (type == IBV_QPT_RAW_PACKET) {
        init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
        init.max_tso_header = INLINE;
    }
    return ibv_create_qp_ex(bench->context, &init);
}

struct bench bench_open(enum ibv_qp_type type, uint64_t operations)
{
    struct bench bench = {.context = alone_open()};
    bench.pd = ibv_alloc_pd(bench.context);
    bench.sent = ibv_create_cq(bench.context, 32, NULL, NULL, 0);
    bench.received = ibv_create_cq(bench.context, 32, NULL, NULL, 0);
    void *memory = aligned_alloc(4096, 4096);
    EXPECT_TRUE(bench.pd && bench.sent && bench.received && memory);
    memset(memory, 0, 4096);
    bench.mr = ibv_reg_mr(bench.pd, memory, 4096,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    bench.qp = bench_make_qp(&bench, type, operations);
    EXPECT_TRUE(bench.mr && bench.qp);
    bench.ex = ibv_qp_to_qp_ex(bench.qp);
    EXPECT_TRUE(bench.ex);
    bench.memory = memory;
    return bench;
}

struct bench bench_open_connected(void)
{
    struct bench bench = bench_open(IBV_QPT_RC, OPS_RC);
    alone_initialize(bench.qp);
    alone_receive_from(bench.qp, bench.qp->qp_num);
    alone_send(bench.qp);
    return bench;
}

void bench_close(struct bench *bench)
{
    EXPECT(ibv_close_device(bench->context), ==, 0);
    free(bench->memory);
}

void bench_post_receive(struct bench *bench, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)bench->memory + TARGET, length, bench->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = ID, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_recv(bench->qp, &wr, &bad), ==, 0);
}

struct ibv_qp_ex *bench_start(struct bench *bench)
{
    ibv_wr_start(bench->ex);
    bench->ex->wr_id = ID;
    bench->ex->wr_flags = IBV_SEND_SIGNALED;
    return bench->ex;
}

void bench_set_source(struct bench *bench, const char *text)
{
    strcpy(bench->memory, text);
    ibv_wr_set_sge(bench->ex, bench->mr->lkey, (uintptr_t)bench->memory, (uint32_t)strlen(text) + 1);
}

void bench_complete(struct bench *bench, enum ibv_wc_opcode opcode)
{
    EXPECT(ibv_wr_complete(bench->ex), ==, 0);
    struct ibv_wc wc = alone_poll(bench->sent);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wr_id, ==, ID);
    EXPECT(wc.opcode, ==, opcode);
}

struct ibv_wc bench_expect_received(struct bench *bench, const char *text)
{
    struct ibv_wc wc = alone_poll(bench->received);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(strcmp(bench->memory + TARGET, text), ==, 0);
    return wc;
}

uint64_t bench_target(const struct bench *bench)
{
    return (uintptr_t)bench->memory + TARGET;
}

uint64_t bench_word_at(const struct bench *bench, size_t offset)
{
    uint64_t word;
    memcpy(&word, bench->memory + offset, sizeof word);
    return word;
}
