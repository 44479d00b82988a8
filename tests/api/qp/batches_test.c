/* Batches of work requests, ibv_wr_post(3): what they post, and what they do when something is wrong in them. All in
 * this process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "builder_fixture.h"

static void a_batch_is_posted_as_one(const void *row)
{
    struct bench bench = bench_open_connected();
    ibv_wr_start(bench.ex);
    for (uint64_t i = 0; i < SENDS; i++) {
        bench.ex->wr_id = i;
        bench.ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(bench.ex, bench.mr->rkey, bench_target(&bench) + i);
        ibv_wr_set_inline_data(bench.ex, &(char){(char)('a' + i)}, 1);
    }
    alone_poll_nothing(bench.sent);
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    for (uint64_t i = 0; i < SENDS; i++)
        EXPECT(alone_poll(bench.sent).wr_id, ==, i);
    EXPECT(memcmp(bench.memory + TARGET, "abcdefgh", SENDS), ==, 0);
    bench_close(&bench);
}

/* Nothing of it was posted, and the queue has all its places. */
static void expect_untouched(struct bench *bench)
{
    alone_poll_nothing(bench->sent);
    EXPECT(alone_state(bench->qp), ==, IBV_QPS_RTS);

    for (int i = 0; i < SENDS; i++) {
        ibv_wr_rdma_write(bench_start(bench), bench->mr->rkey, bench_target(bench));
        bench_set_source(bench, "again");
        bench_complete(bench, IBV_WC_RDMA_WRITE);
    }
}

static void ibv_wr_abort_takes_the_batch_back(const void *row)
{
    struct bench bench = bench_open_connected();
    for (int round = 0; round < 3 * SENDS; round++) {
        ibv_wr_rdma_write(bench_start(&bench), bench.mr->rkey, bench_target(&bench));
        bench_set_source(&bench, "never");
        ibv_wr_rdma_write(bench.ex, bench.mr->rkey, bench_target(&bench));
        ibv_wr_abort(bench.ex);
    }
    EXPECT(bench.memory[TARGET], ==, 0);
    expect_untouched(&bench);
    bench_close(&bench);
}

static void ibv_wr_start_and_ibv_wr_complete_of_nothing_are_fine(const void *row)
{
    struct bench bench = bench_open_connected();
    ibv_wr_start(bench.ex);
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    expect_untouched(&bench);
    bench_close(&bench);
}

static void too_many(struct bench *bench)
{
    for (int i = 0; i <= SENDS; i++)
        ibv_wr_rdma_write(bench->ex, bench->mr->rkey, bench_target(bench));
}

static void too_long_inline(struct bench *bench)
{
    static char data[INLINE + 1];
    ibv_wr_send(bench->ex);
    ibv_wr_set_inline_data(bench->ex, data, sizeof data);
}

static void too_many_pieces(struct bench *bench)
{
    struct ibv_sge list[3] = {{0}};
    ibv_wr_send(bench->ex);
    ibv_wr_set_sge_list(bench->ex, COUNT(list), list);
}

static void a_window_of_the_other_type(struct bench *bench)
{
    struct ibv_mw_bind_info info = {bench->mr, bench_target(bench), 64, IBV_ACCESS_REMOTE_WRITE};
    struct ibv_mw *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_1);
    ibv_wr_bind_mw(bench->ex, mw, ibv_inc_rkey(mw->rkey), &info);
}

static void inline_data_for_a_read(struct bench *bench)
{
    ibv_wr_rdma_read(bench->ex, bench->mr->rkey, bench_target(bench));
    ibv_wr_set_inline_data(bench->ex, bench->memory, 8);
}

static void segments_on_a_connection(struct bench *bench)
{
    ibv_wr_send_tso(bench->ex, bench->memory, 20, 100);
}

struct mistake {
    const char *what;
    void (*make)(struct bench *);
    int error;
};

static const struct mistake mistakes[] = {
    {"more work requests than the queue has places", too_many, ENOMEM},
    {"more inline data than was asked for", too_long_inline, EINVAL},
    {"more pieces than was asked for", too_many_pieces, EINVAL},
    {"a bind of a window of type 1", a_window_of_the_other_type, EINVAL},
    {"inline data for a READ", inline_data_for_a_read, EINVAL},
    {"a large send on a connection", segments_on_a_connection, EINVAL},
};

/* ibv_wr_post(3): an error of any builder is told by ibv_wr_complete, and then nothing of the batch was posted. */
static void one_mistake_spoils_the_batch(const void *row)
{
    const struct mistake *mistake = row;
    struct bench bench = bench_open_connected();
    ibv_wr_rdma_write(bench_start(&bench), bench.mr->rkey, bench_target(&bench)); /* a good one before */
    bench_set_source(&bench, "never");
    mistake->make(&bench);
    ibv_wr_rdma_write(bench.ex, bench.mr->rkey, bench_target(&bench)); /* and one behind */
    EXPECT(ibv_wr_complete(bench.ex), ==, mistake->error);
    EXPECT(bench.memory[TARGET], ==, 0);
    expect_untouched(&bench);
    bench_close(&bench);
}

static void a_queue_pair_that_cannot_send_refuses_a_batch(const void *row)
{
    struct bench bench = bench_open(IBV_QPT_RC, OPS_RC);
    for (int state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
        ibv_wr_send(bench_start(&bench));
        EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
        if (state == IBV_QPS_RESET)
            alone_initialize(bench.qp);
        else if (state == IBV_QPS_INIT)
            alone_receive_from(bench.qp, bench.qp->qp_num);
    }
    bench_close(&bench);
}

static void ibv_qp_to_qp_ex_wants_operations_that_the_type_has(const void *row)
{
    struct bench bench = bench_open(IBV_QPT_UD, OPS_UD);
    struct ibv_qp *plain = bench_make_qp(&bench, IBV_QPT_RC, 0);
    EXPECT_TRUE(plain && !ibv_qp_to_qp_ex(plain));
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE), EOPNOTSUPP);
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_RC, 1ull << 40), EOPNOTSUPP);
    bench_close(&bench);
}

static void all(void)
{
    char title[160];
    CASE(a_batch_is_posted_as_one);
    CASE(ibv_wr_abort_takes_the_batch_back);
    CASE(ibv_wr_start_and_ibv_wr_complete_of_nothing_are_fine);
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        snprintf(title, sizeof title, "one mistake spoils the batch: %s", mistakes[i].what);
        harness_run(title, one_mistake_spoils_the_batch, &mistakes[i]);
    }
    CASE(a_queue_pair_that_cannot_send_refuses_a_batch);
    CASE(ibv_qp_to_qp_ex_wants_operations_that_the_type_has);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
