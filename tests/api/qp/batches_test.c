/* Batches of work requests, ibv_wr_post(3): what they post, and what they do when something is wrong in them. All in
 * this process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "builder_fixture.h"

static void a_batch_is_posted_as_one(const void *row)
{
    struct builder builder = builder_open_connected();
    ibv_wr_start(builder.ex);
    for (uint64_t i = 0; i < SENDS; i++) {
        builder.ex->wr_id = i;
        builder.ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(builder.ex, builder.mr->rkey, builder_target(&builder) + i);
        ibv_wr_set_inline_data(builder.ex, &(char){(char)('a' + i)}, 1);
    }
    local_poll_nothing(builder.sent);
    EXPECT(ibv_wr_complete(builder.ex), ==, 0);
    for (uint64_t i = 0; i < SENDS; i++)
        EXPECT(local_poll(builder.sent).wr_id, ==, i);
    EXPECT(memcmp(builder.memory + TARGET, "abcdefgh", SENDS), ==, 0);
    builder_close(&builder);
}

/* Nothing of it was posted, and the queue has all its places. */
static void expect_untouched(struct builder *builder)
{
    local_poll_nothing(builder->sent);
    EXPECT(local_state(builder->qp), ==, IBV_QPS_RTS);

    for (int i = 0; i < SENDS; i++) {
        ibv_wr_rdma_write(builder_start(builder), builder->mr->rkey, builder_target(builder));
        builder_set_source(builder, "again");
        builder_complete(builder, IBV_WC_RDMA_WRITE);
    }
}

static void ibv_wr_abort_takes_the_batch_back(const void *row)
{
    struct builder builder = builder_open_connected();
    for (int round = 0; round < 3 * SENDS; round++) {
        ibv_wr_rdma_write(builder_start(&builder), builder.mr->rkey, builder_target(&builder));
        builder_set_source(&builder, "never");
        ibv_wr_rdma_write(builder.ex, builder.mr->rkey, builder_target(&builder));
        ibv_wr_abort(builder.ex);
    }
    EXPECT(builder.memory[TARGET], ==, 0);
    expect_untouched(&builder);
    builder_close(&builder);
}

static void ibv_wr_start_and_ibv_wr_complete_of_nothing_are_fine(const void *row)
{
    struct builder builder = builder_open_connected();
    ibv_wr_start(builder.ex);
    EXPECT(ibv_wr_complete(builder.ex), ==, 0);
    expect_untouched(&builder);
    builder_close(&builder);
}

static void too_many(struct builder *builder)
{
    for (int i = 0; i <= SENDS; i++)
        ibv_wr_rdma_write(builder->ex, builder->mr->rkey, builder_target(builder));
}

static void too_long_inline(struct builder *builder)
{
    static char data[INLINE + 1];
    ibv_wr_send(builder->ex);
    ibv_wr_set_inline_data(builder->ex, data, sizeof data);
}

static void too_many_pieces(struct builder *builder)
{
    struct ibv_sge list[3] = {{0}};
    ibv_wr_send(builder->ex);
    ibv_wr_set_sge_list(builder->ex, COUNT(list), list);
}

static void a_window_of_the_other_type(struct builder *builder)
{
    struct ibv_mw_bind_info info = {builder->mr, builder_target(builder), 64, IBV_ACCESS_REMOTE_WRITE};
    struct ibv_mw *mw = ibv_alloc_mw(builder->pd, IBV_MW_TYPE_1);
    ibv_wr_bind_mw(builder->ex, mw, ibv_inc_rkey(mw->rkey), &info);
}

static void inline_data_for_a_read(struct builder *builder)
{
    ibv_wr_rdma_read(builder->ex, builder->mr->rkey, builder_target(builder));
    ibv_wr_set_inline_data(builder->ex, builder->memory, 8);
}

static void segments_on_a_connection(struct builder *builder)
{
    ibv_wr_send_tso(builder->ex, builder->memory, 20, 100);
}

struct mistake {
    const char *what;
    void (*make)(struct builder *);
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

/* ibv_wr_post(3): ibv_wr_complete returns an error of any builder, and then nothing of the batch was posted. */
static void one_mistake_spoils_the_batch(const void *row)
{
    const struct mistake *mistake = row;
    struct builder builder = builder_open_connected();
    ibv_wr_rdma_write(builder_start(&builder), builder.mr->rkey, builder_target(&builder)); /* a good one before */
    builder_set_source(&builder, "never");
    mistake->make(&builder);
    ibv_wr_rdma_write(builder.ex, builder.mr->rkey, builder_target(&builder)); /* and one after it */
    EXPECT(ibv_wr_complete(builder.ex), ==, mistake->error);
    EXPECT(builder.memory[TARGET], ==, 0);
    expect_untouched(&builder);
    builder_close(&builder);
}

static void a_queue_pair_that_cannot_send_refuses_a_batch(const void *row)
{
    struct builder builder = builder_open(IBV_QPT_RC, OPS_RC);
    for (int state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
        ibv_wr_send(builder_start(&builder));
        EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
        if (state == IBV_QPS_RESET)
            local_initialize(builder.qp);
        else if (state == IBV_QPS_INIT)
            local_receive_from(builder.qp, builder.qp->qp_num);
    }
    builder_close(&builder);
}

static void ibv_qp_to_qp_ex_wants_operations_that_the_type_has(const void *row)
{
    struct builder builder = builder_open(IBV_QPT_UD, OPS_UD);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                    .send_cq = builder.sent,
                                    .recv_cq = builder.received,
                                    .cap = {.max_send_wr = SENDS, .max_recv_wr = SENDS, .max_send_sge = 1}};
    struct ibv_qp *plain = ibv_create_qp(builder.pd, &init), *asking = builder_make_qp(&builder, IBV_QPT_RC, 0);
    EXPECT_TRUE(plain && !ibv_qp_to_qp_ex(plain));
    EXPECT_TRUE(asking && ibv_qp_to_qp_ex(asking)); /* the bit of comp_mask decides, with no operation, too */
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE), EOPNOTSUPP);
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_RC, 1ull << 40), EOPNOTSUPP);
    builder_close(&builder);
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
