/* Work queues, tables of them, and queue pairs that spread what they receive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raw.h"

struct spread {
    struct ibv_cq_ex *cq;
    struct ibv_wq *wqs[QUEUES];
    struct ibv_rwq_ind_table *table;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t memory[ROOM];
};

static void make_work_queues(struct spread *spread, struct ibv_pd *pd)
{
    struct ibv_cq_init_attr_ex cq = {.cqe = 256, .wc_flags = FLAGS};
    spread->cq = ibv_create_cq_ex(pd->context, &cq);
    spread->mr = ibv_reg_mr(pd, spread->memory, sizeof spread->memory, IBV_ACCESS_LOCAL_WRITE);
    for (int i = 0; i < QUEUES; i++) {
        struct ibv_wq_init_attr attr = {
            .wq_type = IBV_WQT_RQ, .max_wr = 32, .max_sge = 1, .pd = pd, .cq = ibv_cq_ex_to_cq(spread->cq)};
        spread->wqs[i] = ibv_create_wq(pd->context, &attr);
        EXPECT_TRUE(spread->wqs[i]);
        EXPECT(spread->wqs[i]->state, ==, IBV_WQS_RESET);
    }
}

static int post_to(struct spread *spread, struct ibv_wq *wq, uint64_t id)
{
    struct ibv_sge sge = {(uintptr_t)spread->memory, ROOM, spread->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    return ibv_post_wq_recv(wq, &wr, &bad);
}

static int move(struct ibv_wq *wq, enum ibv_wq_state state)
{
    struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};
    return ibv_modify_wq(wq, &attr);
}

static void make_spread(struct spread *spread, struct ibv_pd *pd)
{
    static uint8_t key[KEY] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25};
    make_work_queues(spread, pd);
    struct ibv_rwq_ind_table_init_attr table = {.log_ind_tbl_size = 2, .ind_tbl = spread->wqs};
    spread->table = ibv_create_rwq_ind_table(pd->context, &table);
    EXPECT_TRUE(spread->table);
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
        .pd = pd,
        .rwq_ind_tbl = spread->table,
        .rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, KEY, key, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4},
    };
    spread->qp = ibv_create_qp_ex(pd->context, &attr);
    EXPECT_TRUE(spread->qp);
}

static void frames_are_spread_over_work_queues(const void *row)
{
    struct pair pair = raw_open_pair();
    struct spread *spread = calloc(1, sizeof *spread);
    unsigned counts[QUEUES] = {0};
    make_spread(spread, near_pd(&pair));
    for (int i = 0; i < QUEUES * 32; i++) {
        if (i < QUEUES)
            EXPECT(move(spread->wqs[i], IBV_WQS_RDY), ==, 0);
        EXPECT(post_to(spread, spread->wqs[i % QUEUES], (uint64_t)i), ==, 0);
    }
    struct ibv_flow *flow = raw_must(RAW_TRY_FLOW(spread->qp, .mac = mac, .tag = 3));
    for (uint32_t i = 0; i < 32; i++) {
        uint8_t frame[UDP_FRAME];
        raw_fill_udp(frame, i * 0x01010101);
        raw_far_sends(&pair, frame, UDP_FRAME, 0);
        struct got got = raw_receive_on(spread->cq);
        EXPECT(got.tag, ==, 3);
        for (int at = 0; at < QUEUES; at++)
            counts[at] += spread->wqs[at]->wq_num == got.number;
    }
    unsigned used = 0, all = 0;
    for (int at = 0; at < QUEUES; at++)
        used += counts[at] > 0, all += counts[at];
    EXPECT(all, ==, 32);
    EXPECT(used, >=, 2);
    EXPECT(ibv_destroy_rwq_ind_table(spread->table), ==, EBUSY);
    EXPECT(ibv_destroy_wq(spread->wqs[0]), ==, EBUSY);
    EXPECT(ibv_destroy_flow(flow), ==, 0);
    EXPECT(ibv_destroy_qp(spread->qp), ==, 0);
    EXPECT(ibv_destroy_rwq_ind_table(spread->table), ==, 0);
    EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(spread->cq)), ==, EBUSY);
    for (int i = 0; i < QUEUES; i++)
        EXPECT(ibv_destroy_wq(spread->wqs[i]), ==, 0);
    ibv_destroy_cq(ibv_cq_ex_to_cq(spread->cq));
    ibv_dereg_mr(spread->mr);
    free(spread);
}

static void a_work_queue_has_states(const void *row)
{
    struct pair pair = raw_open_pair();
    struct spread *spread = calloc(1, sizeof *spread);
    struct ibv_wq_attr wrong = {
        .attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE, .wq_state = IBV_WQS_RDY, .curr_wq_state = IBV_WQS_ERR};
    struct got got;
    make_work_queues(spread, near_pd(&pair));
    struct ibv_wq *wq = spread->wqs[0];
    EXPECT(post_to(spread, wq, 1), ==, EINVAL);
    EXPECT(ibv_modify_wq(wq, &wrong), ==, EINVAL);
    EXPECT(move(wq, IBV_WQS_RDY), ==, 0);
    for (uint64_t i = 0; i < 32; i++)
        EXPECT(post_to(spread, wq, i), ==, 0);
    EXPECT(post_to(spread, wq, 32), ==, ENOMEM);
    EXPECT(move(wq, IBV_WQS_ERR), ==, 0);
    EXPECT(wq->state, ==, IBV_WQS_ERR);
    for (int64_t i = 0; i < 32; i++) {
        EXPECT_TRUE(raw_poll_once(spread->cq, &got));
        EXPECT(got.status, ==, IBV_WC_WR_FLUSH_ERR);
        EXPECT(got.id, ==, i);
    }
    EXPECT(post_to(spread, wq, 40), ==, 0); /* flushed at once */
    EXPECT_TRUE(raw_poll_once(spread->cq, &got) && got.id == 40);
    EXPECT(move(wq, IBV_WQS_RDY), ==, EINVAL);
    EXPECT(post_to(spread, wq, 41), ==, 0);
    EXPECT(move(wq, IBV_WQS_RESET), ==, 0);
    EXPECT_TRUE(!raw_poll_once(spread->cq, &got)); /* withdrawn */
    EXPECT(move(wq, IBV_WQS_RDY), ==, 0);
    for (uint64_t i = 0; i < 32; i++)
        EXPECT(post_to(spread, wq, i), ==, 0); /* what was withdrawn has no place */
    EXPECT(post_to(spread, wq, 32), ==, ENOMEM);
    EXPECT(move(wq, IBV_WQS_ERR), ==, 0);
    EXPECT(post_to(spread, wq, 32), ==, ENOMEM);
    EXPECT_TRUE(raw_poll_once(spread->cq, &got));
    EXPECT(post_to(spread, wq, 32), ==, 0); /* in the place of the one that was polled */
    EXPECT(post_to(spread, wq, 33), ==, ENOMEM);
    for (int i = 0; i < QUEUES; i++)
        EXPECT(ibv_destroy_wq(spread->wqs[i]), ==, 0);
    ibv_destroy_cq(ibv_cq_ex_to_cq(spread->cq));
    ibv_dereg_mr(spread->mr);
    free(spread);
}

static void what_a_raw_queue_pair_cannot_be_is_refused(const void *row)
{
    struct pair pair = raw_open_pair();
    struct ibv_pd *pd = near_pd(&pair);
    struct ibv_cq *cq = near_qp(&pair)->send_cq;
    struct ibv_wq_init_attr bad_wq = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd};
    struct ibv_rwq_ind_table_init_attr bad_table = {.log_ind_tbl_size = 0};
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .pd = pd};
    EXPECT_TRUE(!ibv_create_wq(pd->context, &bad_wq) && errno == EINVAL);
    bad_wq.cq = cq;
    bad_wq.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    bad_wq.create_flags = IBV_WQ_FLAGS_DELAY_DROP;
    EXPECT_TRUE(!ibv_create_wq(pd->context, &bad_wq) && errno == EOPNOTSUPP);
    EXPECT_TRUE(!ibv_create_rwq_ind_table(pd->context, &bad_table) && errno == EINVAL);
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    attr.create_flags = IBV_QP_CREATE_SOURCE_QPN;
    EXPECT_TRUE(!ibv_create_qp_ex(pd->context, &attr) && errno == EOPNOTSUPP);
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
    EXPECT_TRUE(!ibv_create_qp_ex(pd->context, &attr) && errno == EINVAL);
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    attr.max_tso_header = 60000;
    EXPECT_TRUE(!ibv_create_qp_ex(pd->context, &attr) && errno == EINVAL);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};
    EXPECT(ibv_post_send(near_qp(&pair), &wr, &bad), ==, EINVAL);
}

static void all(void)
{
    CASE(frames_are_spread_over_work_queues);
    CASE(a_work_queue_has_states);
    CASE(what_a_raw_queue_pair_cannot_be_is_refused);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
