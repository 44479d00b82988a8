/* A kernel knows an object by its handle. When a program overwrites the handle, no call of control knows the object:
 * made with it, changed, asked or destroyed, the answer is ENOENT, and nothing has happened. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "local_fixture.h"
#include "xrc_make.h"

struct handle_row {
    const char *call;
    uint32_t *(*handle)(void); /* returns the object's handle */
    int64_t (*make)(void);     /* an error number, or what it made: 0 and errno when it made nothing */
};

/* The objects that the rows use. */
static struct fixture fixture;
static struct ibv_qp *qp, *datagram, *frames;
static struct ibv_srq *srq;
static struct ibv_wq *wq;
static struct ibv_dm *dm;
static struct ibv_rwq_ind_table *table;

static void open_all(void)
{
    struct ibv_wq_init_attr init = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1};
    fixture = fixture_open();
    qp = fixture_qp(&fixture, IBV_QPT_RC);
    datagram = fixture_qp(&fixture, IBV_QPT_UD);
    frames = fixture_qp(&fixture, IBV_QPT_RAW_PACKET);
    srq = fixture_srq(&fixture, 1);
    init.pd = fixture.pd, init.cq = fixture.cq;
    wq = ibv_create_wq(fixture.context, &init);
    dm = ibv_alloc_dm(fixture.context, &(struct ibv_alloc_dm_attr){.length = 64});
    table = ibv_create_rwq_ind_table(fixture.context, &(struct ibv_rwq_ind_table_init_attr){.ind_tbl = &wq});
    EXPECT_TRUE(wq && dm && table);
}

#define HANDLE(name, at)                                                                                               \
    static uint32_t *name(void)                                                                                        \
    {                                                                                                                  \
        return at;                                                                                                     \
    }
HANDLE(of_pd, &fixture.pd->handle)
HANDLE(of_mr, &fixture.mr->handle)
HANDLE(of_cq, &fixture.cq->handle)
HANDLE(of_srq, &srq->handle)
HANDLE(of_qp, &qp->handle)
HANDLE(of_datagram, &datagram->handle)
HANDLE(of_frames, &frames->handle)
HANDLE(of_wq, &wq->handle)
HANDLE(of_table, (uint32_t *)&table->ind_tbl_handle)

#define CALL(name, call)                                                                                               \
    static int64_t name(void)                                                                                          \
    {                                                                                                                  \
        return (int64_t)(call);                                                                                        \
    }
#define MAKE(name, call) CALL(name, (uintptr_t)(call))

MAKE(alloc_mw, ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1))
MAKE(reg_mr, ibv_reg_mr(fixture.pd, fixture.memory, 8, 0))
MAKE(reg_dm_mr, ibv_reg_dm_mr(fixture.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED))
MAKE(alloc_null_mr, ibv_alloc_null_mr(fixture.pd))
MAKE(import_mr, ibv_import_mr(fixture.pd, fixture.mr->handle))
MAKE(alloc_parent_domain,
     ibv_alloc_parent_domain(fixture.context, &(struct ibv_parent_domain_init_attr){.pd = fixture.pd}))
MAKE(create_srq, ibv_create_srq(fixture.pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1}}))
MAKE(create_flow, ibv_create_flow(frames, &(struct ibv_flow_attr){.size = sizeof(struct ibv_flow_attr), .port = 1}))
MAKE(create_table, ibv_create_rwq_ind_table(fixture.context, &(struct ibv_rwq_ind_table_init_attr){.ind_tbl = &wq}))

static int64_t create_ah(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(fixture.context, 1, 0, &attr.grh.dgid), ==, 0);
    return (intptr_t)ibv_create_ah(fixture.pd, &attr);
}

static int64_t create_srq_ex(void)
{
    struct ibv_srq_init_attr_ex attr = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = fixture.pd,
                                        .cq = fixture.cq,
                                        .tm_cap = {.max_num_tags = 1, .max_ops = 1},
                                        .attr = {.max_wr = 1, .max_sge = 1}};
    return (intptr_t)ibv_create_srq_ex(fixture.context, &attr);
}

static int64_t create_qp(void)
{
    struct ibv_qp_init_attr attr = fixture_describe(&fixture, IBV_QPT_RC);
    attr.srq = srq;
    return (intptr_t)ibv_create_qp(fixture.pd, &attr);
}

static int64_t create_spreading_qp(void)
{
    static uint8_t key[40];
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .pd = fixture.pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
        .rwq_ind_tbl = table,
        .rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof key, key, IBV_RX_HASH_SRC_IPV4}};
    return (intptr_t)ibv_create_qp_ex(fixture.context, &attr);
}

static int64_t create_wq(void)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = fixture.pd, .cq = fixture.cq};
    return (intptr_t)ibv_create_wq(fixture.context, &attr);
}

static int64_t rereg_mr(void)
{
    int answer = ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_PD, fixture.pd, NULL, 0, 0);
    return answer == IBV_REREG_MR_ERR_CMD ? errno : answer;
}

static int64_t query_qp(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
}

CALL(advise_mr, ibv_advise_mr(fixture.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &(struct ibv_sge){0}, 1))
CALL(modify_qp, ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE))
CALL(modify_qp_rate_limit, ibv_modify_qp_rate_limit(qp, &(struct ibv_qp_rate_limit_attr){0}))
CALL(attach_mcast, ibv_attach_mcast(datagram, &(union ibv_gid){{0xff, 0x12}}, 0))
CALL(detach_mcast, ibv_detach_mcast(datagram, &(union ibv_gid){{0xff, 0x12}}, 0))
CALL(modify_srq, ibv_modify_srq(srq, &(struct ibv_srq_attr){.srq_limit = 1}, IBV_SRQ_LIMIT))
CALL(query_srq, ibv_query_srq(srq, &(struct ibv_srq_attr){0}))
CALL(resize_cq, ibv_resize_cq(fixture.cq, 32))
CALL(modify_cq, ibv_modify_cq(fixture.cq, &(struct ibv_modify_cq_attr){0}))
CALL(modify_wq, ibv_modify_wq(wq, &(struct ibv_wq_attr){0}))
CALL(dealloc_pd, ibv_dealloc_pd(fixture.pd))
CALL(dereg_mr, ibv_dereg_mr(fixture.mr))
CALL(destroy_cq, ibv_destroy_cq(fixture.cq))
CALL(destroy_srq, ibv_destroy_srq(srq))
CALL(destroy_qp, ibv_destroy_qp(qp))
CALL(destroy_wq, ibv_destroy_wq(wq))
CALL(destroy_table, ibv_destroy_rwq_ind_table(table))

#define ROW(call, of)                                                                                                  \
    {                                                                                                                  \
#call, of, call                                                                                                \
    }

static const struct handle_row making[] = {
    ROW(alloc_mw, of_pd),      ROW(reg_mr, of_pd),
    ROW(reg_dm_mr, of_pd),     ROW(alloc_null_mr, of_pd),
    ROW(import_mr, of_pd),     ROW(alloc_parent_domain, of_pd),
    ROW(create_srq, of_pd),    ROW(create_flow, of_frames),
    ROW(create_table, of_wq),  ROW(create_ah, of_pd),
    ROW(create_srq_ex, of_pd), ROW(create_srq_ex, of_cq),
    ROW(create_qp, of_pd),     ROW(create_qp, of_cq),
    ROW(create_qp, of_srq),    ROW(create_spreading_qp, of_table),
    ROW(create_wq, of_pd),     ROW(create_wq, of_cq),
};

static const struct handle_row others[] = {
    ROW(rereg_mr, of_mr),           ROW(rereg_mr, of_pd),           ROW(query_qp, of_qp),
    ROW(advise_mr, of_pd),          ROW(modify_qp, of_qp),          ROW(modify_qp_rate_limit, of_qp),
    ROW(attach_mcast, of_datagram), ROW(detach_mcast, of_datagram), ROW(modify_srq, of_srq),
    ROW(query_srq, of_srq),         ROW(resize_cq, of_cq),          ROW(modify_cq, of_cq),
    ROW(modify_wq, of_wq),          ROW(dealloc_pd, of_pd),         ROW(dereg_mr, of_mr),
    ROW(destroy_cq, of_cq),         ROW(destroy_srq, of_srq),       ROW(destroy_qp, of_qp),
    ROW(destroy_wq, of_wq),         ROW(destroy_table, of_table),
};

static void nothing_is_made_with_a_spoilt_handle(const void *row)
{
    const struct handle_row *of = row;
    open_all();
    uint32_t *handle = of->handle();
    *handle ^= 1u << 30;
    EXPECT_ERRNO(of->make(), ENOENT);
    *handle ^= 1u << 30;
    EXPECT_TRUE(of->make());
    fixture_close(&fixture);
}

static void a_spoilt_handle_is_unknown(const void *row)
{
    const struct handle_row *of = row;
    open_all();
    *of->handle() ^= 1u << 30;
    EXPECT(of->make(), ==, ENOENT);
    fixture_close(&fixture);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *of)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = fixture.cq,
                                       .recv_cq = cq,
                                       .srq = of,
                                       .qp_type = IBV_QPT_RC,
                                       .cap = {1, 1, 1, 1, 0},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};
    return ibv_create_qp_ex(fixture.context, &init);
}

static struct ibv_wq *make_wq(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_wq_init_attr init = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};
    return ibv_create_wq(fixture.context, &init);
}

static struct ibv_srq *make_tags(struct ibv_cq *cq)
{
    struct ibv_srq_init_attr_ex init = {.attr = {1, 1, 0},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = fixture.pd,
                                        .cq = cq,
                                        .tm_cap = {.max_num_tags = 1, .max_ops = 2}};
    return ibv_create_srq_ex(fixture.context, &init);
}

/* A handle is one of its context: each call with what another has made finds nothing (reason 356, OTHER_CONTEXT). */
static void what_another_context_made_is_unknown(const void *row)
{
    open_all();
    struct fixture other = fixture_open();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(other.context);
    struct ibv_dm *memory = ibv_alloc_dm(other.context, &(struct ibv_alloc_dm_attr){.length = 64});
    EXPECT_ERRNO(ibv_create_cq(fixture.context, 1, NULL, channel, 0), EBADF);
    EXPECT_ERRNO(make_qp(other.pd, fixture.cq, NULL), ENOENT);
    EXPECT_ERRNO(make_qp(fixture.pd, other.cq, NULL), ENOENT);
    EXPECT_ERRNO(make_qp(fixture.pd, fixture.cq, fixture_srq(&other, 1)), ENOENT);
    EXPECT_ERRNO(make_wq(other.pd, fixture.cq), ENOENT);
    EXPECT_ERRNO(make_wq(fixture.pd, other.cq), ENOENT);
    EXPECT_ERRNO(make_tags(other.cq), ENOENT);
    EXPECT_ERRNO(ibv_reg_dm_mr(fixture.pd, memory, 0, 64, IBV_ACCESS_ZERO_BASED), ENOENT);
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_PD, other.pd, NULL, 0, 0), ==, IBV_REREG_MR_ERR_CMD);
    EXPECT(errno, ==, ENOENT);
    struct ibv_pd *moved = ibv_alloc_pd(other.context);
    moved->context = fixture.context;
    EXPECT(ibv_dealloc_pd(moved), ==, ENOENT);
    moved->context = other.context;
    EXPECT(ibv_dealloc_pd(moved), ==, 0);
    EXPECT_TRUE(make_qp(fixture.pd, fixture.cq, srq) && make_wq(fixture.pd, fixture.cq) && make_tags(fixture.cq));
    fixture_close(&other);
    fixture_close(&fixture);
}

/* Both contexts have opened the same domain, so only the handle's context distinguishes them. */
static void another_contexts_xrc_domain_is_unknown(const void *row)
{
    open_all();
    struct fixture other = fixture_open();
    int fd = memfd_create("domain", 0);
    struct ibv_xrcd *own = xrc_make_domain(fixture.context, fd, O_CREAT),
                    *strange = xrc_make_domain(other.context, fd, 0);
    EXPECT_TRUE(own && strange);
    struct ibv_qp *receiving = xrc_make_receiver(fixture.context, own);
    EXPECT_TRUE(receiving && xrc_make_srq(fixture.pd, own, fixture.cq, 1) &&
                xrc_make_handle(fixture.context, own, receiving->qp_num));
    EXPECT_ERRNO(xrc_make_srq(fixture.pd, strange, fixture.cq, 1), ENOENT);
    EXPECT_ERRNO(xrc_make_receiver(fixture.context, strange), ENOENT);
    EXPECT_ERRNO(xrc_make_handle(fixture.context, strange, receiving->qp_num), ENOENT);
    EXPECT(ibv_close_xrcd(strange), ==, 0);
    close(fd);
    fixture_close(&other);
    fixture_close(&fixture);
}

static void contexts_that_were_imported_from_each_other_have_the_same_handles(const void *row)
{
    open_all();
    struct ibv_context *imported = ibv_import_device(dup(fixture.context->cmd_fd));
    struct ibv_pd *pd = ibv_import_pd(imported, fixture.pd->handle);
    EXPECT_TRUE(make_qp(pd, fixture.cq, srq));
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), ==, 0);
    EXPECT(ibv_close_device(imported), ==, 0);
    fixture_close(&fixture);
}

static void run_rows(const struct handle_row *rows, size_t count, const char *what, void (*body)(const void *))
{
    for (size_t i = 0; i < count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s (%zu): %s", rows[i].call, i, what);
        harness_run(name, body, &rows[i]);
    }
}

static void all(void)
{
    run_rows(making, COUNT(making), "nothing is made with a spoilt handle", nothing_is_made_with_a_spoilt_handle);
    CASE(what_another_context_made_is_unknown);
    CASE(another_contexts_xrc_domain_is_unknown);
    CASE(contexts_that_were_imported_from_each_other_have_the_same_handles);
    run_rows(others, COUNT(others), "a spoilt handle is unknown", a_spoilt_handle_is_unknown);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
