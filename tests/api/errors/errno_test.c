/* errno and the answer agree: each function that answers an error number, or says -1, is called with a wrong argument.
 * A call that succeeds leaves errno alone; every case of every program here checks that, too (record.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "local_fixture.h"
#include "xrc_make.h"

struct errno_row {
    const char *function;
    int64_t (*wrong)(void); /* its answer; NULL: it can't fail, or only when the process has lost its descriptors */
};

/* The objects that the rows use. */
static struct fixture fixture;
static struct ibv_qp *qp, *datagram, *frames;
static struct ibv_srq *srq;
static struct ibv_cq_ex *iterated;
static struct ibv_comp_channel *channel;
static struct ibv_dm *dm;
static struct ibv_wq *wq;
static struct ibv_recv_wr receive = {.num_sge = 100}, *bad_receive;
static struct ibv_send_wr request, *bad_send;

static struct ibv_qp *make_builder(void)
{
    struct ibv_qp_init_attr plain = fixture_describe(&fixture, IBV_QPT_RC);
    struct ibv_qp_init_attr_ex init = {.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = fixture.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND,
                                       .qp_type = IBV_QPT_RC};
    init.send_cq = plain.send_cq, init.recv_cq = plain.recv_cq, init.cap = plain.cap;
    return ibv_create_qp_ex(fixture.context, &init);
}

static void make_all(void)
{
    fixture = fixture_open();
    qp = make_builder();
    datagram = fixture_qp(&fixture, IBV_QPT_UD);
    frames = fixture_qp(&fixture, IBV_QPT_RAW_PACKET);
    local_initialize(datagram);
    srq = fixture_srq(&fixture, 1);
    channel = ibv_create_comp_channel(fixture.context);
    iterated = ibv_create_cq_ex(fixture.context, &(struct ibv_cq_init_attr_ex){.cqe = 1, .channel = channel});
    dm = ibv_alloc_dm(fixture.context, &(struct ibv_alloc_dm_attr){.length = 64});
    wq = ibv_create_wq(fixture.context,
                       &(struct ibv_wq_init_attr){
                           .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = fixture.pd, .cq = fixture.cq});
    EXPECT_TRUE(qp && channel && iterated && dm && wq);
}

#define CALL(name, call)                                                                                               \
    static int64_t name(void)                                                                                          \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

/* -- what is in use, or whose handle was spoilt */

#define SPOILT(name, handle, call)                                                                                     \
    static int64_t name(void)                                                                                          \
    {                                                                                                                  \
        (handle) ^= 1u << 30;                                                                                          \
        int answer = call;                                                                                             \
        (handle) ^= 1u << 30;                                                                                          \
        return answer;                                                                                                 \
    }
SPOILT(dealloc_pd, fixture.pd->handle, ibv_dealloc_pd(fixture.pd))
SPOILT(dereg_mr, fixture.mr->handle, ibv_dereg_mr(fixture.mr))
SPOILT(destroy_cq, fixture.cq->handle, ibv_destroy_cq(fixture.cq))
SPOILT(destroy_srq, srq->handle, ibv_destroy_srq(srq))
SPOILT(destroy_qp, qp->handle, ibv_destroy_qp(qp))
SPOILT(destroy_wq, wq->handle, ibv_destroy_wq(wq))
SPOILT(free_dm, *newer_dm_handle(dm), ibv_free_dm(dm))

static int64_t destroy_ah(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(fixture.context, 1, 0, &attr.grh.dgid), ==, 0);
    struct ibv_ah *ah = ibv_create_ah(fixture.pd, &attr);
    ah->handle ^= 1u << 30;
    return ibv_destroy_ah(ah);
}

static int64_t dealloc_mw(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1);
    mw->handle ^= 1u << 30;
    return ibv_dealloc_mw(mw);
}

CALL(destroy_comp_channel, ibv_destroy_comp_channel(channel))
static int64_t dealloc_td(void)
{
    struct ibv_td *td = ibv_alloc_td(fixture.context, &(struct ibv_td_init_attr){0});
    struct ibv_parent_domain_init_attr attr = {.pd = fixture.pd, .td = td};
    EXPECT_TRUE(ibv_alloc_parent_domain(fixture.context, &attr));
    return ibv_dealloc_td(td);
}

static int64_t close_xrcd(void)
{
    struct ibv_xrcd *xrcd = xrc_make_domain(fixture.context, -1, O_CREAT);
    EXPECT_TRUE(xrc_make_srq(fixture.pd, xrcd, fixture.cq, 1));
    return ibv_close_xrcd(xrcd);
}

static int64_t destroy_rwq_ind_table(void)
{
    struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &wq};
    struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(fixture.context, &attr);
    table->ind_tbl_handle ^= 1 << 30;
    return ibv_destroy_rwq_ind_table(table);
}

static struct ibv_flow *make_flow(struct ibv_counters *counters)
{
    struct ibv_flow_attr attr = {.size = sizeof attr, .num_of_specs = counters ? 1 : 0, .port = 1};
    struct ibv_flow_spec_counter_action action = {IBV_FLOW_SPEC_ACTION_COUNT, sizeof action, counters};
    char rule[sizeof attr + sizeof action];
    memcpy(mempcpy(rule, &attr, sizeof attr), &action, sizeof action);
    struct ibv_flow *flow = ibv_create_flow(frames, (struct ibv_flow_attr *)rule);
    EXPECT_TRUE(flow);
    return flow;
}

static int64_t destroy_flow(void)
{
    struct ibv_flow *flow = make_flow(NULL);
    flow->handle ^= 1u << 30;
    return ibv_destroy_flow(flow);
}

static struct ibv_counters *make_counters(void)
{
    return ibv_create_counters(fixture.context, &(struct ibv_counters_init_attr){0});
}

static int64_t destroy_counters(void)
{
    struct ibv_counters *counters = make_counters();
    make_flow(counters);
    return ibv_destroy_counters(counters);
}

static int64_t attach_counters_point_flow(void)
{
    struct ibv_counter_attach_attr attr = {IBV_COUNTER_PACKETS, UINT32_MAX, 0};
    return ibv_attach_counters_point_flow(make_counters(), &attr, NULL);
}

static int64_t read_counters(void)
{
    uint64_t value;
    return ibv_read_counters(make_counters(), &value, 1, 1u << 31);
}

CALL(destroy_flow_action, ibv_destroy_flow_action(&(struct ibv_flow_action){fixture.context}))
CALL(modify_flow_action_esp, ibv_modify_flow_action_esp(&(struct ibv_flow_action){fixture.context}, NULL))
/* -- queue pairs and queues */

CALL(modify_qp, ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE))
CALL(modify_qp_rate_limit, ibv_modify_qp_rate_limit(qp, &(struct ibv_qp_rate_limit_attr){.comp_mask = 1u << 30}))
CALL(attach_mcast, ibv_attach_mcast(qp, &(union ibv_gid){0}, 0))
CALL(detach_mcast, ibv_detach_mcast(datagram, &(union ibv_gid){{0xff, 0x12}}, 0))
SPOILT(query_ece, qp->handle, ibv_query_ece(qp, &(struct ibv_ece){0}))
CALL(set_ece, ibv_set_ece(qp, &(struct ibv_ece){.vendor_id = 1, .comp_mask = 1}))
CALL(post_send, ibv_post_send(qp, &request, &bad_send))
static int64_t wr_complete(void)
{
    ibv_wr_start(ibv_qp_to_qp_ex(qp));
    return ibv_wr_complete(ibv_qp_to_qp_ex(qp));
}

CALL(post_recv, ibv_post_recv(qp, &receive, &bad_receive))
CALL(post_too_long_a_list, ibv_post_recv(datagram, &receive, &bad_receive))
CALL(post_srq_recv, ibv_post_srq_recv(srq, &receive, &bad_receive))
CALL(post_wq_recv, ibv_post_wq_recv(wq, &receive, &bad_receive))
static int64_t post_srq_ops(void)
{
    struct ibv_ops_wr *bad, operation = {.opcode = IBV_WR_TAG_SYNC};
    return ibv_post_srq_ops(srq, &operation, &bad);
}

static int64_t bind_mw(void)
{
    struct ibv_mw_bind bind = {.send_flags = 1u << 30};
    return ibv_bind_mw(qp, ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1), &bind);
}

CALL(modify_srq, ibv_modify_srq(srq, &(struct ibv_srq_attr){.max_wr = 0}, IBV_SRQ_MAX_WR))
static int64_t get_srq_num(void)
{
    uint32_t number;
    return ibv_get_srq_num(srq, &number);
}

CALL(modify_wq, ibv_modify_wq(wq, &(struct ibv_wq_attr){.attr_mask = 1u << 30}))
CALL(modify_cq, ibv_modify_cq(fixture.cq, &(struct ibv_modify_cq_attr){.attr_mask = 1u << 30}))
CALL(resize_cq, ibv_resize_cq(fixture.cq, 0))
CALL(start_poll, ibv_start_poll(iterated, &(struct ibv_poll_cq_attr){.comp_mask = 1}))
/* -- memory */

CALL(rereg_mr, ibv_rereg_mr(fixture.mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_CMD ? -1 : 0)
CALL(advise_mr, ibv_advise_mr(fixture.pd, (enum ibv_advise_mr_advice)99, 0, NULL, 0))
CALL(memcpy_to_dm, ibv_memcpy_to_dm(dm, 64, "12345678", 8))
static int64_t memcpy_from_dm(void)
{
    char bytes[8];
    return ibv_memcpy_from_dm(bytes, dm, 64, sizeof bytes);
}

/* -- the device */

static int64_t query_port(void)
{
    struct ibv_port_attr attr;
    return ibv_query_port(fixture.context, 2, &attr);
}

static int64_t query_gid(void)
{
    union ibv_gid gid;
    return ibv_query_gid(fixture.context, 2, 0, &gid);
}

static int64_t query_gid_ex(void)
{
    struct ibv_gid_entry entry;
    return ibv_query_gid_ex(fixture.context, 2, 0, &entry, 0);
}

static int64_t query_gid_ex_with_flags(void)
{
    struct ibv_gid_entry entry;
    return ibv_query_gid_ex(fixture.context, 1, 0, &entry, 1);
}

static int64_t query_gid_table(void)
{
    struct ibv_gid_entry entry;
    return ibv_query_gid_table(fixture.context, &entry, 0, 0);
}

static int64_t query_gid_table_with_flags(void)
{
    struct ibv_gid_entry entry;
    return ibv_query_gid_table(fixture.context, &entry, 1, 1);
}

static int64_t query_pkey(void)
{
    __be16 key;
    return ibv_query_pkey(fixture.context, 1, -1, &key);
}

CALL(get_pkey_index, ibv_get_pkey_index(fixture.context, 1, 0x1234))
CALL(query_rt_values_ex, ibv_query_rt_values_ex(fixture.context, &(struct ibv_values_ex){.comp_mask = 1u << 30}))
static int64_t init_ah_from_wc(void)
{
    struct ibv_grh grh = {.version_tclass_flow = htonl(6u << 28)}; /* to an address that is not ours */
    struct ibv_ah_attr attr;
    return ibv_init_ah_from_wc(fixture.context, 1, &(struct ibv_wc){.wc_flags = IBV_WC_GRH}, &grh, &attr);
}

static int64_t resolve_eth_l2_from_gid(void)
{
    uint8_t address[6];
    uint16_t vlan;
    return ibv_resolve_eth_l2_from_gid(fixture.context, &(struct ibv_ah_attr){0}, address, &vlan);
}

static int64_t get_cq_event(void)
{
    struct ibv_cq *cq;
    void *context;
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    return ibv_get_cq_event(channel, &cq, &context);
}

static int64_t get_async_event(void)
{
    struct ibv_async_event event;
    fcntl(fixture.context->async_fd, F_SETFL, fcntl(fixture.context->async_fd, F_GETFL) | O_NONBLOCK);
    return ibv_get_async_event(fixture.context, &event);
}

#define WRONG(name)                                                                                                    \
    {                                                                                                                  \
        "ibv_" #name, name                                                                                             \
    }
#define IN_TESTS_ABI(name) CAN_NOT_FAIL(name) /* verbs of releases after 44, where errno is looked at as well */
#define CAN_NOT_FAIL(name)                                                                                             \
    {                                                                                                                  \
        "ibv_" #name, NULL                                                                                             \
    }

static const struct errno_row rows[] = {
    WRONG(dealloc_pd),
    WRONG(dereg_mr),
    WRONG(destroy_cq),
    WRONG(destroy_srq),
    WRONG(destroy_qp),
    WRONG(destroy_wq),
    WRONG(free_dm),
    WRONG(destroy_ah),
    WRONG(dealloc_mw),
    WRONG(destroy_comp_channel),
    WRONG(dealloc_td),
    WRONG(close_xrcd),
    WRONG(destroy_rwq_ind_table),
    WRONG(destroy_flow),
    WRONG(destroy_counters),
    WRONG(attach_counters_point_flow),
    WRONG(read_counters),
    WRONG(destroy_flow_action),
    WRONG(modify_flow_action_esp),
    WRONG(modify_qp),
    WRONG(modify_qp_rate_limit),
    WRONG(attach_mcast),
    WRONG(detach_mcast),
    WRONG(set_ece),
    WRONG(post_send),
    WRONG(wr_complete),
    WRONG(post_recv),
    {"ibv_post_recv", post_too_long_a_list},
    WRONG(post_srq_recv),
    WRONG(post_wq_recv),
    WRONG(post_srq_ops),
    WRONG(bind_mw),
    WRONG(modify_srq),
    WRONG(get_srq_num),
    WRONG(modify_wq),
    WRONG(modify_cq),
    WRONG(resize_cq),
    WRONG(start_poll),
    WRONG(rereg_mr),
    WRONG(advise_mr),
    WRONG(memcpy_to_dm),
    WRONG(memcpy_from_dm),
    WRONG(query_port),
    WRONG(query_gid),
    WRONG(query_gid_ex),
    {"ibv_query_gid_ex", query_gid_ex_with_flags},
    WRONG(query_gid_table),
    {"ibv_query_gid_table", query_gid_table_with_flags},
    WRONG(query_pkey),
    WRONG(get_pkey_index),
    WRONG(query_rt_values_ex),
    WRONG(init_ah_from_wc),
    WRONG(resolve_eth_l2_from_gid),
    WRONG(get_cq_event),
    WRONG(get_async_event),
    IN_TESTS_ABI(dealloc_dmah),
    IN_TESTS_ABI(dm_export_dmabuf_fd),
    IN_TESTS_ABI(export_buf_dmabuf_fd),
    IN_TESTS_ABI(query_port_speed),
    IN_TESTS_ABI(query_comp_cntr_caps),
    IN_TESTS_ABI(destroy_comp_cntr),
    IN_TESTS_ABI(inc_comp_cntr),
    IN_TESTS_ABI(inc_err_comp_cntr),
    IN_TESTS_ABI(set_comp_cntr),
    IN_TESTS_ABI(set_err_comp_cntr),
    IN_TESTS_ABI(read_comp_cntr),
    IN_TESTS_ABI(read_err_comp_cntr),
    IN_TESTS_ABI(qp_attach_comp_cntr),
    CAN_NOT_FAIL(close_device),
    CAN_NOT_FAIL(query_device),
    WRONG(query_ece),
    CAN_NOT_FAIL(query_qp),
    CAN_NOT_FAIL(query_srq),
    CAN_NOT_FAIL(poll_cq),
    CAN_NOT_FAIL(req_notify_cq),
    CAN_NOT_FAIL(next_poll), /* ENOENT: nothing is there, which is not a failure */
};

static void a_wrong_argument_is_told_in_errno_as_well(const void *row)
{
    const struct errno_row *of = row;
    make_all();
    errno = 0;
    int64_t answer = of->wrong();
    const int error = errno;
    EXPECT_TRUE(answer);
    EXPECT(error, >, 0);
    if (answer != -1)
        EXPECT(error, ==, answer > 0 ? answer : -answer);
    fixture_close(&fixture);
}

static void every_function_that_can_fail_is_among_these(const void *row)
{
    static const char *const names[] = {RECORDED_FAILING};
    for (size_t i = 0; i < COUNT(names); i++) {
        size_t at = 0;
        while (at < COUNT(rows) && strcmp(rows[at].function, names[i]))
            at++;
        if (at == COUNT(rows))
            harness_fail(__FILE__, __LINE__, "%s has no row", names[i]);
    }
}

static void run_rows(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s: a wrong argument is told in errno as well", rows[i].function);
        if (rows[i].wrong)
            harness_run(name, a_wrong_argument_is_told_in_errno_as_well, &rows[i]);
    }
    CASE(every_function_that_can_fail_is_among_these);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, run_rows);
}
