/* Memory windows of both types: the memory that they open, the peers that may use them and until when, and the binds
 * that are refused. The windows are the near end's, the accesses through them the far end's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "local_end.h"

enum { LENGTH = 4096, OFFSET = 8192, SEED = 7, BIND_ID = 77 };

static struct pair open_with(enum ibv_qp_type type, int access)
{
    struct wishes wishes = pair_wishes(type);
    wishes.access = access;
    return pair_open_as(wishes);
}

static struct pair open_bindable(enum ibv_qp_type type)
{
    return open_with(type, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

static struct ibv_mw *allocate(const struct pair *pair, enum ibv_mw_type type)
{
    struct ibv_mw *mw = ibv_alloc_mw(near_pd(pair), type);
    EXPECT_TRUE(mw);
    EXPECT(mw->type, ==, type);
    EXPECT(mw->rkey, !=, 0);
    EXPECT_TRUE(mw->pd == near_pd(pair) && mw->context == near_pd(pair)->context);
    return mw;
}

static struct ibv_mw_bind_info info_of(const struct pair *pair, unsigned access)
{
    return (struct ibv_mw_bind_info){
        .mr = near_mr(pair), .addr = pair->near.memory + OFFSET, .length = LENGTH, .mw_access_flags = access};
}

/* Posts the bind as the window's type has it: 0 or the errno. */
static int post_bind(const struct pair *pair, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
    if (mw->type == IBV_MW_TYPE_1) {
        struct ibv_mw_bind bind = {.wr_id = BIND_ID, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
        return ibv_bind_mw(near_qp(pair), mw, &bind);
    }
    struct ibv_send_wr *bad, wr = {.wr_id = BIND_ID, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = info;
    return ibv_post_send(near_qp(pair), &wr, &bad);
}

static void bind_expecting(struct pair *pair, struct ibv_mw *mw, struct ibv_mw_bind_info info,
                           enum ibv_wc_status status)
{
    EXPECT(post_bind(pair, mw, info), ==, 0);
    struct ibv_wc wc = end_sent(&pair->near);
    EXPECT(wc.status, ==, status);
    EXPECT(wc.wr_id, ==, BIND_ID);
    if (status == IBV_WC_SUCCESS)
        EXPECT(wc.opcode, ==, IBV_WC_BIND_MW);
}

static void bind(struct pair *pair, struct ibv_mw *mw, unsigned access)
{
    uint32_t before = mw->rkey;
    bind_expecting(pair, mw, info_of(pair, access), IBV_WC_SUCCESS);
    EXPECT(mw->rkey, !=, before);
    EXPECT(mw->rkey >> 8, ==, before >> 8);
}

/* A WRITE through the window must have put the far end's bytes there, and nothing else anywhere. */
static void write_through(struct pair *pair, uint32_t rkey, uint64_t address)
{
    remote_fill(pair->far.remote, pair->far.memory, LENGTH, SEED);
    remote_set(pair->near.remote, pair->near.memory, pair->near.length, 0);
    end_post(&pair->far, far_send_to(pair, IBV_WR_RDMA_WRITE, 1, rkey, address, LENGTH));
    end_expect_sent(&pair->far, 1, IBV_WC_SUCCESS);
    EXPECT(remote_compare(pair->near.remote, pair->near.memory + OFFSET, LENGTH, SEED, 0), ==, -1);
    EXPECT(remote_peek(pair->near.remote, pair->near.memory + OFFSET - 8), ==, 0);
    EXPECT(remote_peek(pair->near.remote, pair->near.memory + OFFSET + LENGTH), ==, 0);
}

/* Ends the pair: both queue pairs are in error afterwards. */
static void expect_refused(struct pair *pair, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                           uint32_t length)
{
    end_post(&pair->far, far_send_to(pair, opcode, 2, rkey, address, length));
    end_expect_sent(&pair->far, 2, IBV_WC_REM_ACCESS_ERR);
    EXPECT(end_state(&pair->near), ==, IBV_QPS_ERR);
    EXPECT(end_state(&pair->far), ==, IBV_QPS_ERR);
}

struct row {
    const char *name;
    enum ibv_mw_type type;
    unsigned access;
    enum ibv_wr_opcode opcode;
    int64_t offset; /* of the access, from the start of the window */
    uint32_t length;
};

static void a_bound_window_lets_writes_in(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    write_through(&pair, mw->rkey, pair.near.memory + OFFSET);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_zero_based_window_counts_from_its_start(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
    write_through(&pair, mw->rkey, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_window_serves_reads_and_atomics(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    remote_poke(pair.near.remote, pair.near.memory + OFFSET, 41);
    struct send add = far_send_to(&pair, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, mw->rkey, pair.near.memory + OFFSET, 8);
    add.wr.wr.atomic.compare_add = 1;
    end_post(&pair.far, add);
    end_expect_sent(&pair.far, 1, IBV_WC_SUCCESS);
    EXPECT(remote_peek(pair.far.remote, pair.far.memory), ==, 41);
    end_post(&pair.far, far_send_to(&pair, IBV_WR_RDMA_READ, 2, mw->rkey, pair.near.memory + OFFSET, 8));
    end_expect_sent(&pair.far, 2, IBV_WC_SUCCESS);
    EXPECT(remote_peek(pair.far.remote, pair.far.memory), ==, 42);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void an_access_that_was_not_granted_is_refused(const void *argument)
{
    const struct row *row = argument;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, row->type);
    bind(&pair, mw, row->access);
    expect_refused(&pair, row->opcode, mw->rkey, pair.near.memory + OFFSET + (uint64_t)row->offset, row->length);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void an_unbound_window_is_refused(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    expect_refused(&pair, IBV_WR_RDMA_WRITE, mw->rkey, pair.near.memory + OFFSET, 8);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void the_key_before_the_bind_is_refused(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    uint32_t before = mw->rkey;
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    expect_refused(&pair, IBV_WR_RDMA_WRITE, before, pair.near.memory + OFFSET, 8);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_deallocated_window_is_refused(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    uint32_t rkey = mw->rkey;
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    expect_refused(&pair, IBV_WR_RDMA_WRITE, rkey, pair.near.memory + OFFSET, 8);
}

/* The window's key is not a local key. */
static void a_window_is_no_source_of_local_data(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND, 3, OFFSET, 8);
    send.sge[0].lkey = mw->rkey;
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 3, IBV_WC_LOC_PROT_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void length_0_unbinds_type_1(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_1);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    EXPECT(ibv_dereg_mr(near_mr(&pair)), ==, EBUSY);
    bind_expecting(&pair, mw, (struct ibv_mw_bind_info){.mr = near_mr(&pair), .addr = pair.near.memory},
                   IBV_WC_SUCCESS);
    expect_refused(&pair, IBV_WR_RDMA_WRITE, mw->rkey, pair.near.memory + OFFSET, 8);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void no_region_at_all_unbinds_type_1(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_1);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    bind_expecting(&pair, mw, (struct ibv_mw_bind_info){0}, IBV_WC_SUCCESS);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_type_1_window_moves_with_each_bind(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_1);
    struct ibv_mw_bind_info info = info_of(&pair, IBV_ACCESS_REMOTE_READ);
    info.addr -= 4096;
    bind_expecting(&pair, mw, info, IBV_WC_SUCCESS);
    uint32_t before = mw->rkey;
    for (int i = 0; i < 300; i++) /* the eight bits of the key come round */
        bind_expecting(&pair, mw, info, IBV_WC_SUCCESS);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    EXPECT(mw->rkey >> 8, ==, before >> 8);
    write_through(&pair, mw->rkey, pair.near.memory + OFFSET);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_region_with_a_window_is_busy(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type), *second = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    bind(&pair, second, IBV_ACCESS_REMOTE_WRITE);
    EXPECT(ibv_dereg_mr(near_mr(&pair)), ==, EBUSY);
    EXPECT(ibv_rereg_mr(near_mr(&pair), IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), ==,
           IBV_REREG_MR_ERR_CMD);
    EXPECT(ibv_dealloc_mw(second), ==, 0);
    EXPECT(ibv_dereg_mr(near_mr(&pair)), ==, EBUSY);
    write_through(&pair, mw->rkey, pair.near.memory + OFFSET);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
}

static void a_domain_with_a_window_is_busy(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_pd *pd = ibv_alloc_pd(near_pd(&pair)->context);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    EXPECT_TRUE(mw);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
}

struct bad_bind {
    const char *name;
    enum ibv_mw_type type;
    int mr_access;
    unsigned access;
    int64_t offset, longer;
};

static void a_bind_that_cannot_be_fails_in_its_turn(const void *argument)
{
    const struct bad_bind *row = argument;
    struct pair pair = open_with(IBV_QPT_RC, row->mr_access);
    struct ibv_mw *mw = allocate(&pair, row->type);
    struct ibv_mw_bind_info info = info_of(&pair, row->access);
    info.addr += (uint64_t)row->offset;
    info.length += (uint64_t)row->longer;
    bind_expecting(&pair, mw, info, IBV_WC_MW_BIND_ERR);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
}

static void a_region_of_another_domain_cannot_be_bound(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_pd *pd = ibv_alloc_pd(near_pd(&pair)->context);
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)pair.near.memory, pair.near.length,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = allocate(&pair, *type);
    struct ibv_mw_bind_info info = info_of(&pair, IBV_ACCESS_REMOTE_WRITE);
    info.mr = mr;
    struct ibv_mw_bind directly = {.bind_info = info};
    if (*type == IBV_MW_TYPE_1) {
        EXPECT(post_bind(&pair, mw, info), ==, EPERM);
        EXPECT(mw->context->ops.bind_mw(near_qp(&pair), mw, &directly), ==, EPERM); /* as from release 33's header */
    } else
        bind_expecting(&pair, mw, info, IBV_WC_MW_BIND_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
}

static void a_region_that_went_before_the_bind_is_an_error(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    struct ibv_mr *mr = ibv_reg_mr(near_pd(&pair), (void *)(uintptr_t)pair.near.memory, pair.near.length,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw_bind_info info = info_of(&pair, IBV_ACCESS_REMOTE_WRITE);
    info.mr = mr;
    /* a SEND that finds no receive holds the bind back */
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 5, 0, 8));
    EXPECT(post_bind(&pair, mw, info), ==, 0);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    end_post_receive(&pair.far, end_receive(&pair.far, 6, 0, 8));
    end_expect_sent(&pair.near, 5, IBV_WC_SUCCESS);
    end_expect_sent(&pair.near, BIND_ID, IBV_WC_MW_BIND_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_bound_type_2_window_cannot_be_bound_again(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    bind_expecting(&pair, mw, info_of(&pair, IBV_ACCESS_REMOTE_READ), IBV_WC_MW_BIND_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_type_2_window_cannot_be_bound_to_nothing(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    bind_expecting(&pair, mw, (struct ibv_mw_bind_info){.mr = near_mr(&pair)}, IBV_WC_MW_BIND_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

/* The low eight bits of a type 2 window's key are the program's choice. The rest is the window's, whatever the program
 * has there: adapters look at these eight bits only. */
static void the_program_chooses_the_low_bits_of_the_key(const void *row)
{
    const uint32_t *others = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    uint32_t chosen = mw->rkey ^ 0x5a;
    struct ibv_send_wr *bad, wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = chosen ^ *others;
    wr.bind_mw.bind_info = info_of(&pair, IBV_ACCESS_REMOTE_WRITE);
    EXPECT(ibv_post_send(near_qp(&pair), &wr, &bad), ==, 0);
    EXPECT(mw->rkey, ==, chosen);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    write_through(&pair, chosen, pair.near.memory + OFFSET);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void the_program_chooses_the_low_bits_and_no_others(void)
{
    static const uint32_t others[] = {0, 0x100, 0xffffff00};
    for (size_t i = 0; i < COUNT(others); i++) {
        char name[128];
        snprintf(name, sizeof name, "the program chooses the low bits of the key (upper bits xor 0x%x)", others[i]);
        harness_run(name, the_program_chooses_the_low_bits_of_the_key, &others[i]);
    }
}

static void invalidate_locally(struct pair *pair, uint32_t rkey, enum ibv_wc_status status)
{
    struct ibv_send_wr *bad, wr = {.wr_id = 9, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
    wr.invalidate_rkey = rkey;
    EXPECT(ibv_post_send(near_qp(pair), &wr, &bad), ==, 0);
    struct ibv_wc wc = end_sent(&pair->near);
    EXPECT(wc.wr_id, ==, 9);
    EXPECT(wc.status, ==, status);
    if (!status)
        EXPECT(wc.opcode, ==, IBV_WC_LOCAL_INV);
}

static void a_locally_invalidated_window_is_refused_and_can_be_bound_again(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    uint32_t old = mw->rkey;
    invalidate_locally(&pair, old, IBV_WC_SUCCESS);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    write_through(&pair, mw->rkey, pair.near.memory + OFFSET);
    expect_refused(&pair, IBV_WR_RDMA_WRITE, old, pair.near.memory + OFFSET, 8);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static uint32_t key_of(const struct pair *pair, const char *what, struct ibv_mw *mw)
{
    if (!strcmp(what, "a region"))
        return near_mr(pair)->rkey;
    return !strcmp(what, "nothing") ? 0x12345600 : mw->rkey;
}

struct bad_invalidate {
    const char *what;
    enum ibv_mw_type type;
    bool bound;
};

static void what_is_no_bound_type_2_window_cannot_be_invalidated_locally(const void *argument)
{
    const struct bad_invalidate *row = argument;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, row->type);
    if (row->bound)
        bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    invalidate_locally(&pair, key_of(&pair, row->what, mw), IBV_WC_MW_BIND_ERR);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_ERR);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static struct send send_with_invalidate(const struct pair *pair, uint32_t rkey, uint32_t length)
{
    struct send send = end_send(&pair->far, &pair->near, IBV_WR_SEND_WITH_INV, 4, 0, length);
    send.wr.invalidate_rkey = rkey;
    return send;
}

static void a_send_with_invalidate_takes_the_window_away(const void *row)
{
    const uint32_t *length = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    remote_fill(pair.far.remote, pair.far.memory, *length, SEED);
    end_post_receive(&pair.near, end_receive(&pair.near, 3, 0, *length));
    end_post(&pair.far, send_with_invalidate(&pair, mw->rkey, *length));
    end_expect_sent(&pair.far, 4, IBV_WC_SUCCESS);
    struct ibv_wc wc = end_received(&pair.near);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_INV);
    EXPECT(wc.invalidated_rkey, ==, mw->rkey);
    EXPECT(wc.byte_len, ==, *length);
    EXPECT(remote_compare(pair.near.remote, pair.near.memory, *length, SEED, 0), ==, -1);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0); /* nothing is bound to it any more */
    expect_refused(&pair, IBV_WR_RDMA_WRITE, mw->rkey, pair.near.memory + OFFSET, 8);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void what_is_no_bound_type_2_window_cannot_be_invalidated_by_the_peer(const void *argument)
{
    const struct bad_invalidate *row = argument;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, row->type);
    if (row->bound)
        bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    end_post_receive(&pair.near, end_receive(&pair.near, 3, 0, 8));
    end_post(&pair.far, send_with_invalidate(&pair, key_of(&pair, row->what, mw), 8));
    end_expect_sent(&pair.far, 4, IBV_WC_SUCCESS);
    struct ibv_wc wc = end_received(&pair.near);
    EXPECT(wc.status, ==, IBV_WC_REM_INV_REQ_ERR);
    EXPECT(wc.vendor_err, ==, REASON_INVALIDATE_KEY);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_ERR);
    EXPECT(end_state(&pair.far), ==, IBV_QPS_RTS);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

/* The far end's second queue pair, connected to a second one of the near end. */
static void connect_second(struct pair *second, const struct pair *pair)
{
    *second = *pair;
    end_create_qp(&second->near, &second->wishes);
    end_create_qp(&second->far, &second->wishes);
    pair_connect(second);
}

static void a_type_2_window_serves_only_the_queue_pair_that_bound_it(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC), second;
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    connect_second(&second, &pair);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    expect_refused(&second, IBV_WR_RDMA_WRITE, mw->rkey, pair.near.memory + OFFSET, 8);
    write_through(&pair, mw->rkey, pair.near.memory + OFFSET);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void a_type_1_window_serves_all_queue_pairs_of_its_domain(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC), second;
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_1);
    connect_second(&second, &pair);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    write_through(&second, mw->rkey, pair.near.memory + OFFSET);
    write_through(&pair, mw->rkey, pair.near.memory + OFFSET);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void destroying_the_queue_pair_unbinds_its_windows(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, IBV_MW_TYPE_2);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    EXPECT(ibv_dereg_mr(near_mr(&pair)), ==, EBUSY);
    EXPECT(remote_destroy(pair.near.remote, KIND_QP, pair.near.qp), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void binding_works_on_uc(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_UC);
    struct ibv_mw *mw = allocate(&pair, *type);
    bind(&pair, mw, IBV_ACCESS_REMOTE_WRITE);
    remote_fill(pair.far.remote, pair.far.memory, LENGTH, SEED);
    end_post(&pair.far, far_send_to(&pair, IBV_WR_RDMA_WRITE, 1, mw->rkey, pair.near.memory + OFFSET, LENGTH));
    end_expect_sent(&pair.far, 1, IBV_WC_SUCCESS);
    struct ibv_mw_bind_info info = info_of(&pair, 0);
    pair_ping(&pair, &pair.far, &pair.near);
    EXPECT(remote_compare(pair.near.remote, pair.near.memory + OFFSET, LENGTH, SEED, 0), ==, -1);
    info.length = 0;
    if (*type == IBV_MW_TYPE_1)
        bind_expecting(&pair, mw, info, IBV_WC_SUCCESS);
    else
        invalidate_locally(&pair, mw->rkey, IBV_WC_SUCCESS);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void ud_has_no_windows(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_UD);
    struct ibv_mw *one = allocate(&pair, IBV_MW_TYPE_1), *two = allocate(&pair, IBV_MW_TYPE_2);
    EXPECT(post_bind(&pair, one, info_of(&pair, IBV_ACCESS_REMOTE_WRITE)), ==, EINVAL);
    EXPECT(post_bind(&pair, two, info_of(&pair, IBV_ACCESS_REMOTE_WRITE)), ==, EINVAL);
    EXPECT(ibv_dealloc_mw(one), ==, 0);
    EXPECT(ibv_dealloc_mw(two), ==, 0);
}

static void calls_that_make_no_sense_are_refused_at_once(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *one = allocate(&pair, IBV_MW_TYPE_1), *two = allocate(&pair, IBV_MW_TYPE_2);
    struct ibv_mw_bind bind = {.bind_info = info_of(&pair, IBV_ACCESS_REMOTE_WRITE)};
    EXPECT_TRUE(!ibv_alloc_mw(near_pd(&pair), 3));
    EXPECT(errno, ==, EINVAL);
    EXPECT(ibv_bind_mw(near_qp(&pair), two, &bind), ==, EINVAL);
    bind.bind_info.mr = NULL;
    EXPECT(ibv_bind_mw(near_qp(&pair), one, &bind), ==, EINVAL);
    /* as release 33, whose header leaves checks to the provider */
    EXPECT(one->context->ops.bind_mw(near_qp(&pair), one, &bind), ==, EINVAL);
    EXPECT(one->context->ops.bind_mw(near_qp(&pair), two, &bind), ==, EINVAL);
    bind = (struct ibv_mw_bind){.bind_info = info_of(&pair, 1 << 12)};
    EXPECT(ibv_bind_mw(near_qp(&pair), one, &bind), ==, EINVAL);
    bind = (struct ibv_mw_bind){.send_flags = IBV_SEND_INLINE};
    EXPECT(ibv_bind_mw(near_qp(&pair), one, &bind), ==, EINVAL);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW};
    EXPECT(ibv_post_send(near_qp(&pair), &wr, &bad), ==, EINVAL);
    wr.bind_mw.mw = one;
    EXPECT(ibv_post_send(near_qp(&pair), &wr, &bad), ==, EINVAL);
    EXPECT_TRUE(bad == &wr);
    pair_ping(&pair, &pair.near, &pair.far);
    EXPECT(ibv_dealloc_mw(one), ==, 0);
    EXPECT(ibv_dealloc_mw(two), ==, 0);
}

static void a_flushed_bind_binds_nothing(const void *row)
{
    const enum ibv_mw_type *type = row;
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_mw *mw = allocate(&pair, *type);
    EXPECT(end_move(&pair.near, IBV_QPS_ERR), ==, 0);
    bind_expecting(&pair, mw, info_of(&pair, IBV_ACCESS_REMOTE_WRITE), IBV_WC_WR_FLUSH_ERR);
    EXPECT(remote_destroy(pair.near.remote, KIND_MR, pair.near.mr), ==, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
}

static void the_device_says_what_it_can(const void *row)
{
    struct pair pair = open_bindable(IBV_QPT_RC);
    struct ibv_device_attr attr;
    EXPECT(ibv_query_device(near_pd(&pair)->context, &attr), ==, 0);
    EXPECT(attr.max_mw, >, 0);
    EXPECT_TRUE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
    EXPECT_TRUE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

static const struct row refused[] = {
    {"no write", 0, IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 8},
    {"no read", 0, IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 8},
    {"no atomic", 0, IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8},
    {"before", 0, IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, -1, 8},
    {"behind", 0, IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, LENGTH - 7, 8},
    {"too long", 0, IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, 0, LENGTH + 1},
};

static const struct bad_bind bad_binds[] = {
    {"no bind access", 0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, 0, 0},
    {"no local write", 0, IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_WRITE, 0, 0},
    {"no local write for atomics", 0, IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_ATOMIC, 0, 0},
    {"before the region", 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_READ, -OFFSET - 1, 0},
    {"too long", 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_READ, 0, 1 << 20},
};

static const struct bad_invalidate bad_invalidates[] = {
    {"a region", IBV_MW_TYPE_2, false},
    {"nothing", IBV_MW_TYPE_2, false},
    {"a window", IBV_MW_TYPE_2, false},
    {"a window", IBV_MW_TYPE_1, true},
};

static void both_types(const char *name, void (*body)(const void *))
{
    static const enum ibv_mw_type types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};
    char title[128];
    for (size_t i = 0; i < COUNT(types); i++) {
        snprintf(title, sizeof title, "%s (type %zu)", name, i + 1);
        harness_run(title, body, &types[i]);
    }
}
#define BOTH(body) both_types(#body, body)

static void tables_of(enum ibv_mw_type type)
{
    char title[128];
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct row row = refused[i];
        row.type = type;
        snprintf(title, sizeof title, "an_access_that_was_not_granted_is_refused (type %d, %s)", type, row.name);
        harness_run(title, an_access_that_was_not_granted_is_refused, &row);
    }
    for (size_t i = 0; i < COUNT(bad_binds); i++) {
        struct bad_bind row = bad_binds[i];
        row.type = type;
        snprintf(title, sizeof title, "a_bind_that_cannot_be_fails_in_its_turn (type %d, %s)", type, row.name);
        harness_run(title, a_bind_that_cannot_be_fails_in_its_turn, &row);
    }
}

static void invalidates(void)
{
    char title[128];
    static const uint32_t lengths[] = {0, 8, 40000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        harness_run("a_send_with_invalidate_takes_the_window_away", a_send_with_invalidate_takes_the_window_away,
                    &lengths[i]);
    for (size_t i = 0; i < COUNT(bad_invalidates); i++) {
        const struct bad_invalidate *row = &bad_invalidates[i];
        snprintf(title, sizeof title, "what_is_no_bound_type_2_window_cannot_be_invalidated (%s, type %d)", row->what,
                 row->type);
        harness_run(title, what_is_no_bound_type_2_window_cannot_be_invalidated_locally, row);
        harness_run(title, what_is_no_bound_type_2_window_cannot_be_invalidated_by_the_peer, row);
    }
}

static void all(void)
{
    BOTH(a_bound_window_lets_writes_in);
    BOTH(a_zero_based_window_counts_from_its_start);
    BOTH(a_window_serves_reads_and_atomics);
    BOTH(an_unbound_window_is_refused);
    BOTH(the_key_before_the_bind_is_refused);
    BOTH(a_deallocated_window_is_refused);
    BOTH(a_window_is_no_source_of_local_data);
    BOTH(a_region_with_a_window_is_busy);
    BOTH(a_region_of_another_domain_cannot_be_bound);
    BOTH(binding_works_on_uc);
    BOTH(a_flushed_bind_binds_nothing);
    tables_of(IBV_MW_TYPE_1);
    tables_of(IBV_MW_TYPE_2);
    invalidates();
    CASE(length_0_unbinds_type_1);
    CASE(no_region_at_all_unbinds_type_1);
    CASE(a_type_1_window_moves_with_each_bind);
    CASE(a_domain_with_a_window_is_busy);
    CASE(a_region_that_went_before_the_bind_is_an_error);
    CASE(a_bound_type_2_window_cannot_be_bound_again);
    CASE(a_type_2_window_cannot_be_bound_to_nothing);
    the_program_chooses_the_low_bits_and_no_others();
    CASE(a_locally_invalidated_window_is_refused_and_can_be_bound_again);
    CASE(a_type_2_window_serves_only_the_queue_pair_that_bound_it);
    CASE(a_type_1_window_serves_all_queue_pairs_of_its_domain);
    CASE(destroying_the_queue_pair_unbinds_its_windows);
    CASE(ud_has_no_windows);
    CASE(calls_that_make_no_sense_are_refused_at_once);
    CASE(the_device_says_what_it_can);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
