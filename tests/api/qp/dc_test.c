/* Dynamically connected queue pairs, mlx5dv_create_qp(3) and mlx5dv_wr_set_dc_addr(3), under a profile with the face of
 * mlx5: initiators send to targets of the same process. */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag.h"
#include "one_process.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/mlx5.def"

enum {
    KEY = 0x11223344, /* of the first target; the others' follow */
    UPPER = 0x55667788,
    TARGETS = 3,
    THOUSAND = 1000,
    MANY = 600, /* more initiators than a target has responders for */
    RECEIVES = 128,
    SENDS = 32,
    BYTES = 1 << 16,
    NEAR = 0, /* places in the memory */
    FAR = 1 << 15,
    NOBODY = 0xabcdef,
};

static struct ends {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *received;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    struct ibv_qp *targets[TARGETS], *initiator;
    unsigned char *memory;
} ends;

/* --- making */

static uint64_t key_of(unsigned target)
{
    return (uint64_t)UPPER << 32 | (KEY + target);
}

static struct ibv_qp *make_target(struct ibv_srq *srq, uint64_t key)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = ends.sent,
                                       .recv_cq = ends.received,
                                       .srq = srq,
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = ends.pd};
    struct mlx5dv_qp_init_attr dc = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = key}};
    return mlx5dv_create_qp(ends.context, &attr, &dc);
}

static void open_target(struct ibv_qp *target)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags =
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    EXPECT(ibv_modify_qp(target, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), ==, 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .min_rnr_timer = 1,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    EXPECT(ibv_modify_qp(target, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU), ==, 0);
}

static uint8_t reads = 4; /* max_rd_atomic */

static void reset(struct ibv_qp *qp)
{
    EXPECT(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), ==, 0);
}

static void to_rts(struct ibv_qp *initiator, uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT(ibv_modify_qp(initiator, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), ==, 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    EXPECT(ibv_modify_qp(initiator, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU), ==, 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 2, .rnr_retry = rnr_retry, .max_rd_atomic = reads};
    EXPECT(ibv_modify_qp(initiator, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
                             IBV_QP_SQ_PSN),
           ==, 0);
}

static struct ibv_qp *make_initiator_of(uint64_t more, struct mlx5dv_dc_init_attr init)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = ends.sent,
                                       .recv_cq = ends.sent,
                                       .srq = ends.srq, /* is ignored */
                                       .cap = {.max_send_wr = SENDS, .max_send_sge = 1, .max_inline_data = 32},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = ends.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                                         IBV_QP_EX_WITH_RDMA_WRITE |
                                                         IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                                                         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
    struct mlx5dv_qp_init_attr dc = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | more, .dc_init_attr = init};
    return mlx5dv_create_qp(ends.context, &attr, &dc);
}

static struct ibv_qp *make_initiator(void)
{
    struct ibv_qp *initiator = make_initiator_of(0, (struct mlx5dv_dc_init_attr){.dc_type = MLX5DV_DCTYPE_DCI});
    EXPECT_TRUE(initiator);
    return initiator;
}

static struct ibv_qp *make_streams(uint8_t log_errored)
{
    return make_initiator_of(
        MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
        (struct mlx5dv_dc_init_attr){.dc_type = MLX5DV_DCTYPE_DCI,
                                     .dci_streams = {.log_num_concurent = 2, .log_num_errored = log_errored}});
}

static void open_ends(uint8_t rnr_retry)
{
    ends = (struct ends){.context = local_open(), .memory = calloc(1, BYTES)};
    ends.pd = ibv_alloc_pd(ends.context);
    ends.sent = ibv_create_cq(ends.context, 1024, NULL, NULL, 0);
    ends.received = ibv_create_cq(ends.context, 1024, NULL, NULL, 0);
    ends.srq = ibv_create_srq(ends.pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = RECEIVES, .max_sge = 1}});
    ends.mr = ibv_reg_mr(ends.pd, ends.memory, BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    EXPECT_TRUE(ends.memory && ends.sent && ends.received && ends.srq && ends.mr);
    for (unsigned i = 0; i < TARGETS; i++) {
        ends.targets[i] = make_target(ends.srq, key_of(i));
        EXPECT_TRUE(ends.targets[i]);
        open_target(ends.targets[i]);
    }
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(ends.context, 1, 0, &attr.grh.dgid), ==, 0);
    ends.ah = ibv_create_ah(ends.pd, &attr);
    EXPECT_TRUE(ends.ah);
    ends.initiator = make_initiator();
    to_rts(ends.initiator, rnr_retry);
}

static void close_ends(void)
{
    EXPECT(ibv_destroy_qp(ends.initiator), ==, 0);
    for (unsigned i = 0; i < TARGETS; i++)
        if (ends.targets[i])
            EXPECT(ibv_destroy_qp(ends.targets[i]), ==, 0);
    EXPECT(ibv_destroy_ah(ends.ah), ==, 0);
    EXPECT(ibv_destroy_srq(ends.srq), ==, 0);
    EXPECT(ibv_dereg_mr(ends.mr), ==, 0);
    EXPECT(ibv_destroy_cq(ends.sent), ==, 0);
    EXPECT(ibv_destroy_cq(ends.received), ==, 0);
    EXPECT(ibv_dealloc_pd(ends.pd), ==, 0);
    EXPECT(ibv_close_device(ends.context), ==, 0);
    free(ends.memory);
}

/* --- work */

static void post_receives(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct ibv_sge sge = {(uintptr_t)ends.memory + FAR, 4096, ends.mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        EXPECT(ibv_post_srq_recv(ends.srq, &wr, &bad), ==, 0);
    }
}

static void name_receiver(struct ibv_qp *initiator, uint32_t number, uint64_t key)
{
    struct mlx5dv_qp_ex *builders = mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(initiator));
    builders->wr_set_dc_addr(builders, ends.ah, number, key);
}

static void build_send(struct ibv_qp *initiator, uint64_t id, uint32_t number, uint64_t key, uint32_t length)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(initiator);
    ex->wr_id = id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(ex, (uint32_t)id);
    name_receiver(initiator, number, key);
    ibv_wr_set_sge(ex, ends.mr->lkey, (uintptr_t)ends.memory + NEAR, length);
}

static void send_to(struct ibv_qp *initiator, uint64_t id, uint32_t number, uint64_t key)
{
    ibv_wr_start(ibv_qp_to_qp_ex(initiator));
    build_send(initiator, id, number, key, 8);
    EXPECT(ibv_wr_complete(ibv_qp_to_qp_ex(initiator)), ==, 0);
}

static void expect_sent(uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = local_poll(ends.sent);
    EXPECT(wc.wr_id, ==, id);
    EXPECT(wc.status, ==, status);
}

static void expect_received(unsigned target, uint32_t immediate)
{
    struct ibv_wc wc = local_poll(ends.received);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.qp_num, ==, ends.targets[target]->qp_num);
    EXPECT(wc.src_qp, ==, ends.initiator->qp_num);
    EXPECT(wc.imm_data, ==, immediate);
}

/* A message to a target arrives. */
static void expect_works(unsigned target)
{
    post_receives(1);
    send_to(ends.initiator, 99, ends.targets[target]->qp_num, key_of(target));
    expect_sent(99, IBV_WC_SUCCESS);
    expect_received(target, 99);
}

/* --- cases */

static void each_work_request_goes_to_its_target_in_order(const void *row)
{
    open_ends(7);
    post_receives(SENDS);
    ibv_wr_start(ibv_qp_to_qp_ex(ends.initiator));
    for (unsigned i = 0; i < SENDS; i++)
        build_send(ends.initiator, i, ends.targets[i / 2 % TARGETS]->qp_num, key_of(i / 2 % TARGETS), i % 5 ? 8 : 3000);
    EXPECT(ibv_wr_complete(ibv_qp_to_qp_ex(ends.initiator)), ==, 0);
    for (unsigned i = 0; i < SENDS; i++) {
        expect_sent(i, IBV_WC_SUCCESS);
        expect_received(i / 2 % TARGETS, i);
    }
    close_ends();
}

static void memory_of_a_target_is_written_read_and_added_to(const void *row)
{
    struct ibv_qp_ex *ex;
    open_ends(7);
    ex = ibv_qp_to_qp_ex(ends.initiator);
    memcpy(ends.memory + NEAR, "12345678", 8);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    for (ex->wr_id = 0; ex->wr_id < 3; ex->wr_id++) {
        uint64_t remote = (uintptr_t)ends.memory + FAR + (ex->wr_id == 2 ? 64 : 0);
        if (ex->wr_id == 0)
            ibv_wr_rdma_write(ex, ends.mr->rkey, remote);
        else if (ex->wr_id == 1)
            ibv_wr_rdma_read(ex, ends.mr->rkey, remote);
        else
            ibv_wr_atomic_fetch_add(ex, ends.mr->rkey, remote, 5);
        name_receiver(ends.initiator, ends.targets[ex->wr_id]->qp_num, key_of((unsigned)ex->wr_id));
        ibv_wr_set_sge(ex, ends.mr->lkey, (uintptr_t)ends.memory + NEAR + ex->wr_id * 64, 8);
    }
    EXPECT(ibv_wr_complete(ex), ==, 0);
    for (unsigned i = 0; i < 3; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    EXPECT(memcmp(ends.memory + FAR, "12345678", 8), ==, 0);
    EXPECT(memcmp(ends.memory + NEAR + 64, "12345678", 8), ==, 0);
    EXPECT(ends.memory[FAR + 64], ==, 5);
    close_ends();
}

static void an_initiator_has_one_read_at_least(const void *row)
{
    reads = 0;
    memory_of_a_target_is_written_read_and_added_to(row);
    reads = 4;
}

static void a_wrong_access_key_ends_the_work_and_not_the_target(const void *row)
{
    open_ends(7);
    send_to(ends.initiator, 1, ends.targets[0]->qp_num, key_of(1));
    struct ibv_wc wc = local_poll(ends.sent);
    EXPECT(wc.status, ==, IBV_WC_REM_ACCESS_ERR);
    EXPECT(wc.vendor_err, ==, REASON_ACCESS_KEY);
    send_to(ends.initiator, 2, ends.targets[0]->qp_num, key_of(0));
    expect_sent(2, IBV_WC_WR_FLUSH_ERR);
    reset(ends.initiator);
    to_rts(ends.initiator, 7);
    expect_works(0);
    close_ends();
}

static void a_number_that_no_target_has_is_silence(const void *row)
{
    open_ends(7);
    send_to(ends.initiator, 1, NOBODY, key_of(0));
    expect_sent(1, IBV_WC_RETRY_EXC_ERR);
    reset(ends.initiator);
    to_rts(ends.initiator, 7);
    expect_works(2);
    close_ends();
}

static void a_wrong_key_of_memory_ends_the_work_and_not_the_target(const void *row)
{
    struct ibv_qp_ex *ex;
    open_ends(7);
    ex = ibv_qp_to_qp_ex(ends.initiator);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(ex, ends.mr->rkey ^ 0x100, (uintptr_t)ends.memory + FAR);
    name_receiver(ends.initiator, ends.targets[0]->qp_num, key_of(0));
    ibv_wr_set_sge(ex, ends.mr->lkey, (uintptr_t)ends.memory, 8);
    EXPECT(ibv_wr_complete(ex), ==, 0);
    expect_sent(1, IBV_WC_REM_ACCESS_ERR);
    reset(ends.initiator);
    to_rts(ends.initiator, 7);
    expect_works(0);
    close_ends();
}

static void a_target_without_a_receive_is_not_ready(const void *row)
{
    open_ends(0);
    send_to(ends.initiator, 1, ends.targets[1]->qp_num, key_of(1));
    expect_sent(1, IBV_WC_RNR_RETRY_EXC_ERR);
    close_ends();
}

static void a_target_that_is_destroyed_answers_nothing(const void *row)
{
    open_ends(7);
    uint32_t number = ends.targets[0]->qp_num;
    expect_works(0);
    EXPECT(ibv_destroy_qp(ends.targets[0]), ==, 0);
    ends.targets[0] = NULL;
    send_to(ends.initiator, 1, number, key_of(0));
    expect_sent(1, IBV_WC_RETRY_EXC_ERR);
    close_ends();
}

static void more_initiators_than_responders_take_turns(const void *row)
{
    static struct ibv_qp *initiators[MANY];
    open_ends(7);
    for (unsigned i = 0; i < MANY; i++) {
        initiators[i] = make_initiator();
        to_rts(initiators[i], 7);
    }
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < MANY; i++) {
            post_receives(1);
            send_to(initiators[i], i, ends.targets[0]->qp_num, key_of(0));
            expect_sent(i, IBV_WC_SUCCESS);
            EXPECT(local_poll(ends.received).src_qp, ==, initiators[i]->qp_num);
        }
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(ibv_destroy_qp(initiators[i]), ==, 0);
    close_ends();
}

static void an_initiator_has_a_thousand_targets(const void *row)
{
    static struct ibv_qp *targets[THOUSAND];
    open_ends(7);
    for (unsigned i = 0; i < THOUSAND; i++) {
        targets[i] = make_target(ends.srq, key_of(i));
        EXPECT_TRUE(targets[i]);
        open_target(targets[i]);
    }
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < THOUSAND; i++) {
            post_receives(1);
            send_to(ends.initiator, i, targets[i]->qp_num, key_of(i));
            expect_sent(i, IBV_WC_SUCCESS);
            EXPECT(local_poll(ends.received).qp_num, ==, targets[i]->qp_num);
        }
    for (unsigned i = 0; i < THOUSAND; i++)
        EXPECT(ibv_destroy_qp(targets[i]), ==, 0);
    close_ends();
}

static void an_address_handle_may_go_between_two_work_requests(const void *row)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    open_ends(7);
    expect_works(0);
    EXPECT(ibv_query_gid(ends.context, 1, 0, &attr.grh.dgid), ==, 0);
    EXPECT(ibv_destroy_ah(ends.ah), ==, 0);
    ends.ah = ibv_create_ah(ends.pd, &attr);
    EXPECT_TRUE(ends.ah);
    expect_works(0);
    close_ends();
}

/* DCT_NO_SRQ */
static void a_target_needs_an_srq(const void *row)
{
    open_ends(7);
    errno = 0;
    EXPECT_TRUE(!make_target(NULL, 1));
    EXPECT(errno, ==, EINVAL);
    close_ends();
}

static void work_of_an_initiator_needs_an_address(const void *row)
{
    struct ibv_sge sge = {0};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge}, *bad;
    open_ends(7);
    EXPECT(ibv_post_send(ends.initiator, &wr, &bad), ==, EINVAL);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ends.initiator);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    EXPECT(ibv_wr_complete(ex), ==, EINVAL);
    close_ends();
}

/* --- streams */

static void open_streams(uint8_t log_errored)
{
    open_ends(7);
    EXPECT(ibv_destroy_qp(ends.initiator), ==, 0);
    ends.initiator = make_streams(log_errored);
    EXPECT_TRUE(ends.initiator);
    to_rts(ends.initiator, 7);
    post_receives(8);
}

/* The work is of the stream with the tens of its number. */
static void build_in_stream(uint64_t id, bool wrong)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ends.initiator);
    struct mlx5dv_qp_ex *builders = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    ex->wr_id = id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    builders->wr_set_dc_addr_stream(builders, ends.ah, ends.targets[0]->qp_num, key_of(0), (uint16_t)(id / 10));
    ibv_wr_set_sge(ex, ends.mr->lkey ^ (wrong ? 0x100 : 0), (uintptr_t)ends.memory, 8);
}

static void post_in_stream(uint64_t id, bool wrong)
{
    ibv_wr_start(ibv_qp_to_qp_ex(ends.initiator));
    build_in_stream(id, wrong);
    EXPECT(ibv_wr_complete(ibv_qp_to_qp_ex(ends.initiator)), ==, 0);
}

static void an_error_ends_the_work_of_its_stream_alone(const void *row)
{
    open_streams(2);
    ibv_wr_start(ibv_qp_to_qp_ex(ends.initiator));
    build_in_stream(10, false);
    build_in_stream(20, false);
    build_in_stream(11, true);
    build_in_stream(12, false);
    build_in_stream(21, false);
    EXPECT(ibv_wr_complete(ibv_qp_to_qp_ex(ends.initiator)), ==, 0);
    expect_sent(10, IBV_WC_SUCCESS);
    expect_sent(20, IBV_WC_SUCCESS);
    expect_sent(11, IBV_WC_LOC_PROT_ERR);
    expect_sent(12, IBV_WC_WR_FLUSH_ERR);
    expect_sent(21, IBV_WC_SUCCESS);
    close_ends();
}

static void a_stream_that_is_reset_goes_on(const void *row)
{
    open_streams(2);
    post_in_stream(10, true);
    expect_sent(10, IBV_WC_LOC_PROT_ERR);
    EXPECT(mlx5dv_dci_stream_id_reset(ends.initiator, 2), ==, EINVAL);
    post_in_stream(11, false);
    expect_sent(11, IBV_WC_WR_FLUSH_ERR);
    EXPECT(mlx5dv_dci_stream_id_reset(ends.initiator, 1), ==, 0);
    post_in_stream(12, false);
    expect_sent(12, IBV_WC_SUCCESS);
    EXPECT(mlx5dv_dci_stream_id_reset(ends.targets[0], 1), ==, EINVAL);
    close_ends();
}

static void as_many_streams_in_error_as_may_be_end_all(const void *row)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    open_streams(1);
    post_in_stream(10, true);
    expect_sent(10, IBV_WC_LOC_PROT_ERR);
    post_in_stream(20, true);
    post_in_stream(30, false);
    expect_sent(20, IBV_WC_LOC_PROT_ERR);
    expect_sent(30, IBV_WC_WR_FLUSH_ERR);
    EXPECT(ibv_query_qp(ends.initiator, &attr, IBV_QP_STATE, &init), ==, 0);
    EXPECT(attr.qp_state, ==, IBV_QPS_ERR);
    EXPECT(mlx5dv_dci_stream_id_reset(ends.initiator, 1), ==, EOPNOTSUPP);
    reset(ends.initiator);
    to_rts(ends.initiator, 7);
    post_in_stream(11, false);
    expect_sent(11, IBV_WC_SUCCESS);
    close_ends();
}

/* The peer's refusal comes while later work of the stream is under way. */
static void a_refusal_of_the_target_ends_the_work_of_its_stream_alone(const void *row)
{
    struct ibv_qp_ex *ex;
    open_streams(2);
    ex = ibv_qp_to_qp_ex(ends.initiator);
    ibv_wr_start(ex);
    ex->wr_id = 10;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(ex, ends.mr->rkey ^ 0x100, (uintptr_t)ends.memory);
    struct mlx5dv_qp_ex *builders = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    builders->wr_set_dc_addr_stream(builders, ends.ah, ends.targets[0]->qp_num, key_of(0), 1);
    ibv_wr_set_sge(ex, ends.mr->lkey, (uintptr_t)ends.memory, 8);
    build_in_stream(11, false);
    build_in_stream(20, false);
    EXPECT(ibv_wr_complete(ex), ==, 0);
    expect_sent(10, IBV_WC_REM_ACCESS_ERR);
    expect_sent(11, IBV_WC_WR_FLUSH_ERR);
    expect_sent(20, IBV_WC_SUCCESS);
    close_ends();
}

static void streams_are_as_many_as_the_device_has(const void *row)
{
    open_ends(7);
    errno = 0;
    EXPECT_TRUE(!make_streams(4));
    EXPECT(errno, ==, EINVAL);
    EXPECT(mlx5dv_dci_stream_id_reset(ends.initiator, 1), ==, EOPNOTSUPP);
    close_ends();
}

static void all(void)
{
    CASE(each_work_request_goes_to_its_target_in_order);
    CASE(memory_of_a_target_is_written_read_and_added_to);
    CASE(an_initiator_has_one_read_at_least);
    CASE(a_wrong_access_key_ends_the_work_and_not_the_target);
    CASE(a_number_that_no_target_has_is_silence);
    CASE(a_wrong_key_of_memory_ends_the_work_and_not_the_target);
    CASE(a_target_without_a_receive_is_not_ready);
    CASE(a_target_that_is_destroyed_answers_nothing);
    CASE(more_initiators_than_responders_take_turns);
    CASE(an_initiator_has_a_thousand_targets);
    CASE(an_address_handle_may_go_between_two_work_requests);
    CASE(a_target_needs_an_srq);
    CASE(work_of_an_initiator_needs_an_address);
    CASE(an_error_ends_the_work_of_its_stream_alone);
    CASE(a_stream_that_is_reset_goes_on);
    CASE(as_many_streams_in_error_as_may_be_end_all);
    CASE(a_refusal_of_the_target_ends_the_work_of_its_stream_alone);
    CASE(streams_are_as_many_as_the_device_has);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
