/* Completion counters of release 65, called as a program that was built against it calls them: by name and version
 * node, with structures laid out here once more, by value. */
#include "later.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };

struct counter {
    struct ibv_context *context;
    uint32_t handle;
};
struct counter_caps {
    uint64_t max_value;
    uint32_t max_counters, operations;
};
struct counter_attr {
    uint32_t comp_mask, type, flags;
};
struct attach_attr {
    uint32_t comp_mask, operations;
};
enum {
    COUNT_SEND = 1,
    COUNT_RECV = 2,
    COUNT_READ = 4,
    COUNT_REMOTE_READ = 8,
    COUNT_WRITE = 16,
    COUNT_WORK = 0,
    COUNT_BYTES = 1
};

static struct {
    int (*query_comp_cntr_caps)(struct ibv_context *, struct counter_caps *, size_t);
    struct counter *(*create_comp_cntr)(struct ibv_context *, struct counter_attr *);
    int (*destroy_comp_cntr)(struct counter *);
    int (*set_comp_cntr)(struct counter *, uint64_t);
    int (*set_err_comp_cntr)(struct counter *, uint64_t);
    int (*inc_comp_cntr)(struct counter *, uint64_t);
    int (*inc_err_comp_cntr)(struct counter *, uint64_t);
    int (*read_comp_cntr)(struct counter *, uint64_t *);
    int (*read_err_comp_cntr)(struct counter *, uint64_t *);
    int (*attach)(struct ibv_qp *, struct counter *, struct attach_attr *);
} later;

static int open_device(void **unused)
{
    static const struct later_function functions[] = {
        {&later.query_comp_cntr_caps, "_ibv_query_comp_cntr_caps", "IBVERBS_1.18"},
        {&later.create_comp_cntr, "ibv_create_comp_cntr", "IBVERBS_1.18"},
        {&later.destroy_comp_cntr, "ibv_destroy_comp_cntr", "IBVERBS_1.18"},
        {&later.set_comp_cntr, "ibv_set_comp_cntr", "IBVERBS_1.18"},
        {&later.set_err_comp_cntr, "ibv_set_err_comp_cntr", "IBVERBS_1.18"},
        {&later.inc_comp_cntr, "ibv_inc_comp_cntr", "IBVERBS_1.18"},
        {&later.inc_err_comp_cntr, "ibv_inc_err_comp_cntr", "IBVERBS_1.18"},
        {&later.read_comp_cntr, "ibv_read_comp_cntr", "IBVERBS_1.18"},
        {&later.read_err_comp_cntr, "ibv_read_err_comp_cntr", "IBVERBS_1.18"},
        {&later.attach, "ibv_qp_attach_comp_cntr", "IBVERBS_1.18"},
        {NULL, NULL, NULL},
    };
    return later_open(functions);
}

static struct counter *make_counter(uint32_t type)
{
    struct counter *counter = later.create_comp_cntr(context, &(struct counter_attr){.type = type});
    assert_non_null(counter);
    assert_ptr_equal(counter->context, context);
    return counter;
}

static void assert_counted(struct counter *counter, uint64_t good, uint64_t bad)
{
    uint64_t value = 77;
    assert_int_equal(later.read_comp_cntr(counter, &value), 0);
    assert_int_equal(value, good);
    assert_int_equal(later.read_err_comp_cntr(counter, &value), 0);
    assert_int_equal(value, bad);
}

static int count(struct ibv_qp *qp, struct counter *counter, uint32_t operations)
{
    return later.attach(qp, counter, &(struct attach_attr){.operations = operations});
}

static char memory[256];

struct loop {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
};

static struct loop open_loop(void)
{
    struct loop loop = {.cq = ibv_create_cq(context, 16, NULL, NULL, 0)};
    struct ibv_qp_init_attr init = {
        .send_cq = loop.cq, .recv_cq = loop.cq, .qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
    loop.qp = ibv_create_qp(pd, &init);
    loop.mr = ibv_reg_mr(pd, memory, sizeof memory, ACCESS | IBV_ACCESS_REMOTE_WRITE);
    assert_true(loop.qp && loop.mr);
    return loop;
}

static void connect_loop(struct loop *loop)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    assert_int_equal(
        ibv_modify_qp(loop->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = loop->qp->qp_num};
    attr.max_dest_rd_atomic = 1;
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    assert_int_equal(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), 0);
    assert_int_equal(ibv_modify_qp(loop->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                     0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1};
    assert_int_equal(ibv_modify_qp(loop->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

/* Only what is signalled gives an entry. */
static void post_to_itself(struct loop *loop, enum ibv_wr_opcode opcode, uint32_t length, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)memory, length, loop->mr->lkey}, *list = &sge;
    struct ibv_recv_wr receive = {.sg_list = list, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr wr = {.sg_list = list, .num_sge = 1, .opcode = opcode, .send_flags = flags}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)memory + 128;
    wr.wr.rdma.rkey = loop->mr->rkey;
    if (opcode == IBV_WR_SEND)
        assert_int_equal(ibv_post_recv(loop->qp, &receive, &bad_receive), 0);
    assert_int_equal(ibv_post_send(loop->qp, &wr, &bad), 0);
}

static void await(struct ibv_cq *cq, unsigned count)
{
    struct ibv_wc wc;
    while (count)
        count -= (unsigned)ibv_poll_cq(cq, 1, &wc);
}

static void close_loop(struct loop *loop)
{
    assert_int_equal(ibv_destroy_qp(loop->qp), 0);
    assert_int_equal(ibv_destroy_cq(loop->cq), 0);
    assert_int_equal(ibv_dereg_mr(loop->mr), 0);
}

static void a_counter_holds_two_values(void **unused)
{
    struct counter *counter = make_counter(COUNT_WORK);
    assert_counted(counter, 0, 0);
    assert_int_equal(later.set_comp_cntr(counter, UINT64_MAX), 0);
    assert_int_equal(later.set_err_comp_cntr(counter, 5), 0);
    assert_counted(counter, UINT64_MAX, 5);
    assert_int_equal(later.inc_comp_cntr(counter, 3), 0); /* it wraps */
    assert_int_equal(later.inc_err_comp_cntr(counter, 2), 0);
    assert_counted(counter, 2, 7);
    assert_int_equal(later.destroy_comp_cntr(counter), 0);
}

static void the_device_counts_what_the_queue_pair_itself_does(void **unused)
{
    struct {
        struct counter_caps caps;
        uint64_t newer;
    } answer = {.newer = 9};
    assert_int_equal(later.query_comp_cntr_caps(context, &answer.caps, sizeof answer), 0);
    assert_true(answer.caps.max_value == UINT64_MAX);
    assert_int_equal(answer.caps.max_counters, 65536);
    assert_int_equal(answer.caps.operations, COUNT_SEND | COUNT_RECV | COUNT_READ | COUNT_WRITE);
    assert_int_equal(answer.newer, 0);
    uint64_t most = 0;
    assert_int_equal(later.query_comp_cntr_caps(context, (void *)&most, sizeof most), 0);
    assert_true(most == UINT64_MAX);
}

static void a_counter_that_does_not_exist_is_refused(void **unused)
{
    static const struct counter_attr wrong[] = {{.comp_mask = 1}, {.type = 2}, {.flags = 1}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(later.create_comp_cntr(context, (struct counter_attr *)&wrong[i]), EINVAL);
}

static void what_ends_on_a_queue_pair_is_counted_signalled_or_not(void **unused)
{
    struct counter *work = make_counter(COUNT_WORK), *bytes = make_counter(COUNT_BYTES);
    struct loop loop = open_loop();
    assert_int_equal(count(loop.qp, work, COUNT_SEND | COUNT_READ | COUNT_WRITE), 0);
    assert_int_equal(count(loop.qp, bytes, COUNT_RECV), 0);
    connect_loop(&loop);
    post_to_itself(&loop, IBV_WR_RDMA_WRITE, 8, 0);
    post_to_itself(&loop, IBV_WR_RDMA_READ, 8, 0);
    post_to_itself(&loop, IBV_WR_SEND, 100, 0);
    post_to_itself(&loop, IBV_WR_SEND, 20, IBV_SEND_SIGNALED);
    await(loop.cq, 3);
    assert_counted(work, 4, 0);
    assert_counted(bytes, 120, 0);
    assert_int_equal(later.destroy_comp_cntr(work), EBUSY);
    close_loop(&loop);
    assert_counted(work, 4, 0); /* a counter lives longer than what it counts */
    assert_int_equal(later.destroy_comp_cntr(work), 0);
    assert_int_equal(later.destroy_comp_cntr(bytes), 0);
}

static void work_that_fails_is_counted_apart(void **unused)
{
    struct counter *counter = make_counter(COUNT_BYTES);
    struct loop loop = open_loop();
    assert_int_equal(count(loop.qp, counter, COUNT_SEND | COUNT_RECV), 0);
    connect_loop(&loop);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(loop.qp, &attr, IBV_QP_STATE), 0);
    post_to_itself(&loop, IBV_WR_SEND, 100, 0);
    await(loop.cq, 2);
    assert_counted(counter, 0, 2);
    close_loop(&loop);
    assert_int_equal(later.destroy_comp_cntr(counter), 0);
}

static void a_counter_is_attached_before_the_queue_pair_works(void **unused)
{
    struct counter *counter = make_counter(COUNT_WORK), *other = make_counter(COUNT_WORK);
    struct loop loop = open_loop();
    assert_int_equal(count(loop.qp, counter, 0), EINVAL);
    assert_int_equal(later.attach(loop.qp, counter, &(struct attach_attr){1, COUNT_SEND}), EINVAL);
    assert_int_equal(count(loop.qp, counter, COUNT_REMOTE_READ), EOPNOTSUPP);
    assert_int_equal(count(loop.qp, counter, COUNT_SEND), 0);
    assert_int_equal(count(loop.qp, other, COUNT_RECV | COUNT_SEND), EBUSY);
    assert_int_equal(errno, EBUSY);
    connect_loop(&loop);
    assert_int_equal(count(loop.qp, other, COUNT_RECV), EINVAL);
    close_loop(&loop);
    assert_int_equal(later.destroy_comp_cntr(counter), 0);
    assert_int_equal(later.destroy_comp_cntr(other), 0);
}

static void a_counter_that_is_left_goes_with_its_device(void **unused)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *second = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    struct counter *counter = later.create_comp_cntr(second, &(struct counter_attr){0});
    assert_non_null(counter); /* LeakSanitizer sees when it stays */
    struct loop loop = open_loop();
    assert_int_equal(count(loop.qp, counter, COUNT_SEND), EINVAL); /* of another context */
    close_loop(&loop);
    assert_int_equal(ibv_close_device(second), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_holds_two_values),
        cmocka_unit_test(the_device_counts_what_the_queue_pair_itself_does),
        cmocka_unit_test(a_counter_that_does_not_exist_is_refused),
        cmocka_unit_test(what_ends_on_a_queue_pair_is_counted_signalled_or_not),
        cmocka_unit_test(work_that_fails_is_counted_apart),
        cmocka_unit_test(a_counter_is_attached_before_the_queue_pair_works),
        cmocka_unit_test(a_counter_that_is_left_goes_with_its_device),
    };
    return cmocka_run_group_tests(tests, open_device, later_close);
}
