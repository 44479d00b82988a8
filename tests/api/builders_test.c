/* Work requests made by the builders of extended queue pairs, ibv_wr_post(3): each of them, and what a batch does when
 * something is wrong in it. All in this process, on queue pairs that are connected with themselves. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alone.h"

enum {
    SENDS = 8,
    INLINE = 64,
    TARGET = 2048, /* where in the memory the far side is */
    ID = 1000,
    OPS_RC = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
             IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
             IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
             IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE,
    OPS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
};

struct bench {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *received;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
    char *memory;
};

static struct ibv_qp *make_qp(struct bench *bench, enum ibv_qp_type type, uint64_t operations)
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

static struct bench open_bench(enum ibv_qp_type type, uint64_t operations)
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
    bench.qp = make_qp(&bench, type, operations);
    EXPECT_TRUE(bench.mr && bench.qp);
    bench.ex = ibv_qp_to_qp_ex(bench.qp);
    EXPECT_TRUE(bench.ex);
    bench.memory = memory;
    return bench;
}

static struct bench open_connected(void)
{
    struct bench bench = open_bench(IBV_QPT_RC, OPS_RC);
    alone_initialize(bench.qp);
    alone_receive_from(bench.qp, bench.qp->qp_num);
    alone_send(bench.qp);
    return bench;
}

static void close_bench(struct bench *bench)
{
    EXPECT(ibv_close_device(bench->context), ==, 0);
    free(bench->memory);
}

static void post_receive(struct bench *bench, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)bench->memory + TARGET, length, bench->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = ID, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_recv(bench->qp, &wr, &bad), ==, 0);
}

/* Begins a batch of one signalled work request. */
static struct ibv_qp_ex *start(struct bench *bench)
{
    ibv_wr_start(bench->ex);
    bench->ex->wr_id = ID;
    bench->ex->wr_flags = IBV_SEND_SIGNALED;
    return bench->ex;
}

/* The memory's first bytes are what is sent. */
static void set_source(struct bench *bench, const char *text)
{
    strcpy(bench->memory, text);
    ibv_wr_set_sge(bench->ex, bench->mr->lkey, (uintptr_t)bench->memory, (uint32_t)strlen(text) + 1);
}

static void complete(struct bench *bench, enum ibv_wc_opcode opcode)
{
    EXPECT(ibv_wr_complete(bench->ex), ==, 0);
    struct ibv_wc wc = alone_poll(bench->sent);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wr_id, ==, ID);
    EXPECT(wc.opcode, ==, opcode);
}

static struct ibv_wc expect_received(struct bench *bench, const char *text)
{
    struct ibv_wc wc = alone_poll(bench->received);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(strcmp(bench->memory + TARGET, text), ==, 0);
    return wc;
}

static uint64_t target(const struct bench *bench)
{
    return (uintptr_t)bench->memory + TARGET;
}

static uint64_t word_at(const struct bench *bench, size_t offset)
{
    uint64_t word;
    memcpy(&word, bench->memory + offset, sizeof word);
    return word;
}

/* -- each builder */

static void ibv_wr_send_sends(const void *row)
{
    struct bench bench = open_connected();
    post_receive(&bench, 64);
    ibv_wr_send(start(&bench));
    set_source(&bench, "built");
    complete(&bench, IBV_WC_SEND);
    EXPECT(expect_received(&bench, "built").wc_flags & IBV_WC_WITH_IMM, ==, 0);
    close_bench(&bench);
}

static void ibv_wr_send_imm_carries_its_value(const void *row)
{
    struct bench bench = open_connected();
    post_receive(&bench, 64);
    ibv_wr_send_imm(start(&bench), htonl(0x12345678));
    set_source(&bench, "with a value");
    complete(&bench, IBV_WC_SEND);
    struct ibv_wc wc = expect_received(&bench, "with a value");
    EXPECT(ntohl(wc.imm_data), ==, 0x12345678);
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_IMM);
    close_bench(&bench);
}

static void ibv_wr_rdma_write_writes(const void *row)
{
    struct bench bench = open_connected();
    ibv_wr_rdma_write(start(&bench), bench.mr->rkey, target(&bench));
    set_source(&bench, "written");
    complete(&bench, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(bench.memory + TARGET, "written"), ==, 0);
    close_bench(&bench);
}

static void ibv_wr_rdma_write_imm_takes_a_receive(const void *row)
{
    struct bench bench = open_connected();
    post_receive(&bench, 0);
    ibv_wr_rdma_write_imm(start(&bench), bench.mr->rkey, target(&bench), htonl(7));
    set_source(&bench, "written and told");
    complete(&bench, IBV_WC_RDMA_WRITE);
    struct ibv_wc wc = expect_received(&bench, "written and told");
    EXPECT(wc.opcode, ==, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT(ntohl(wc.imm_data), ==, 7);
    close_bench(&bench);
}

static void ibv_wr_rdma_read_reads(const void *row)
{
    struct bench bench = open_connected();
    strcpy(bench.memory + TARGET, "to be read");
    ibv_wr_rdma_read(start(&bench), bench.mr->rkey, target(&bench));
    ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 16);
    complete(&bench, IBV_WC_RDMA_READ);
    EXPECT(strcmp(bench.memory, "to be read"), ==, 0);
    close_bench(&bench);
}

static void ibv_wr_atomic_cmp_swp_swaps_what_is_equal(const void *row)
{
    struct bench bench = open_connected();
    memcpy(bench.memory + TARGET, &(uint64_t){5}, 8);
    for (uint64_t wanted = 4; wanted <= 5; wanted++) {
        ibv_wr_atomic_cmp_swp(start(&bench), bench.mr->rkey, target(&bench), wanted, 77);
        ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 8);
        complete(&bench, IBV_WC_COMP_SWAP);
        EXPECT(word_at(&bench, 0), ==, 5);
        EXPECT(word_at(&bench, TARGET), ==, wanted == 5 ? 77 : 5);
    }
    close_bench(&bench);
}

static void ibv_wr_atomic_fetch_add_adds(const void *row)
{
    struct bench bench = open_connected();
    memcpy(bench.memory + TARGET, &(uint64_t){5}, 8);
    ibv_wr_atomic_fetch_add(start(&bench), bench.mr->rkey, target(&bench), 3);
    ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 8);
    complete(&bench, IBV_WC_FETCH_ADD);
    EXPECT(word_at(&bench, 0), ==, 5);
    EXPECT(word_at(&bench, TARGET), ==, 8);
    close_bench(&bench);
}

static void ibv_wr_atomic_write_writes_eight_bytes(const void *row)
{
    struct bench bench = open_connected();
    uint64_t value = 0x1122334455667788;
    ibv_wr_atomic_write(start(&bench), bench.mr->rkey, target(&bench), &value);
    value = 0; /* it was taken when it was given */
    complete(&bench, IBV_WC_ATOMIC_WRITE);
    EXPECT(word_at(&bench, TARGET), ==, 0x1122334455667788);
    EXPECT(word_at(&bench, TARGET + 8), ==, 0);
    close_bench(&bench);
}

/* A window that is bound, written through, and invalidated by the one side or by the other. */
static uint32_t bind_window(struct bench *bench, struct ibv_mw **mw)
{
    *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_2);
    EXPECT_TRUE(*mw);
    uint32_t rkey = ibv_inc_rkey((*mw)->rkey);
    struct ibv_mw_bind_info info = {bench->mr, target(bench), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(start(bench), *mw, rkey, &info);
    complete(bench, IBV_WC_BIND_MW);
    ibv_wr_rdma_write(start(bench), rkey, target(bench));
    set_source(bench, "through the window");
    complete(bench, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(bench->memory + TARGET, "through the window"), ==, 0);
    return rkey;
}

static void expect_closed(struct bench *bench, uint32_t rkey)
{
    ibv_wr_rdma_write(start(bench), rkey, target(bench));
    set_source(bench, "shut");
    EXPECT(ibv_wr_complete(bench->ex), ==, 0);
    /* As responder the queue pair goes to error, which flushes the work before the refusal comes to it as requester. */
    EXPECT(alone_poll(bench->sent).status, ==, IBV_WC_WR_FLUSH_ERR);
    EXPECT(alone_event(bench->context).event_type, ==, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT(strcmp(bench->memory + TARGET, "shut"), !=, 0);
}

static void ibv_wr_bind_mw_opens_and_ibv_wr_local_inv_closes(const void *row)
{
    struct bench bench = open_connected();
    struct ibv_mw *mw;
    uint32_t rkey = bind_window(&bench, &mw);
    ibv_wr_local_inv(start(&bench), rkey);
    complete(&bench, IBV_WC_LOCAL_INV);
    expect_closed(&bench, rkey);
    close_bench(&bench);
}

static void ibv_wr_local_inv_of_a_closed_window_fails(const void *row)
{
    struct bench bench = open_connected();
    ibv_wr_local_inv(start(&bench), bench.mr->rkey); /* a region's key cannot be invalidated */
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    EXPECT(alone_poll(bench.sent).status, !=, IBV_WC_SUCCESS);
    EXPECT(alone_state(bench.qp), ==, IBV_QPS_ERR);
    close_bench(&bench);
}

static void ibv_wr_send_inv_closes_a_window_of_the_receiver(const void *row)
{
    struct bench bench = open_connected();
    struct ibv_mw *mw;
    uint32_t rkey = bind_window(&bench, &mw);
    post_receive(&bench, 64);
    ibv_wr_send_inv(start(&bench), rkey);
    set_source(&bench, "shut it");
    complete(&bench, IBV_WC_SEND);
    struct ibv_wc wc = expect_received(&bench, "shut it");
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_INV);
    EXPECT(wc.invalidated_rkey, ==, rkey);
    expect_closed(&bench, rkey);
    close_bench(&bench);
}

static void ibv_wr_set_inline_data_is_taken_at_once(const void *row)
{
    struct bench bench = open_connected();
    char text[] = "in line";
    post_receive(&bench, 64);
    ibv_wr_send(start(&bench));
    ibv_wr_set_inline_data(bench.ex, text, sizeof text);
    memset(text, 'x', sizeof text);
    complete(&bench, IBV_WC_SEND);
    EXPECT(expect_received(&bench, "in line").byte_len, ==, sizeof text);
    close_bench(&bench);
}

static void ibv_wr_set_inline_data_list_gathers(const void *row)
{
    struct bench bench = open_connected();
    struct ibv_data_buf parts[] = {{"from ", 5}, {"", 0}, {"several ", 8}, {"places", 7}};
    post_receive(&bench, 64);
    ibv_wr_send(start(&bench));
    ibv_wr_set_inline_data_list(bench.ex, COUNT(parts), parts);
    complete(&bench, IBV_WC_SEND);
    EXPECT(expect_received(&bench, "from several places").byte_len, ==, 20);
    close_bench(&bench);
}

static void ibv_wr_set_sge_list_gathers(const void *row)
{
    struct bench bench = open_connected();
    strcpy(bench.memory, "one ");
    strcpy(bench.memory + 100, "two");
    struct ibv_sge list[] = {{(uintptr_t)bench.memory, 4, bench.mr->lkey},
                             {(uintptr_t)bench.memory + 100, 4, bench.mr->lkey}};
    post_receive(&bench, 64);
    ibv_wr_send(start(&bench));
    ibv_wr_set_sge_list(bench.ex, COUNT(list), list);
    complete(&bench, IBV_WC_SEND);
    EXPECT(expect_received(&bench, "one two").byte_len, ==, 8);
    close_bench(&bench);
}

static void ibv_wr_set_sge_is_wanted_by_nothing_but_data(const void *row)
{
    struct bench bench = open_connected();
    post_receive(&bench, 64);
    ibv_wr_send(start(&bench)); /* no data: an empty message */
    complete(&bench, IBV_WC_SEND);
    EXPECT(alone_poll(bench.received).byte_len, ==, 0);
    close_bench(&bench);
}

static struct ibv_ah *connect_datagrams(struct bench *bench)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    alone_initialize(bench->qp);
    alone_receive_from(bench->qp, 0);
    alone_send(bench->qp);
    EXPECT(ibv_query_gid(bench->context, 1, 0, &attr.grh.dgid), ==, 0);
    struct ibv_ah *ah = ibv_create_ah(bench->pd, &attr);
    EXPECT_TRUE(ah);
    return ah;
}

static void ibv_wr_set_ud_addr_says_to_whom(const void *row)
{
    enum { GRH = 40, KEY = 0x11 };
    struct bench bench = open_bench(IBV_QPT_UD, OPS_UD);
    struct ibv_ah *ah = connect_datagrams(&bench);
    post_receive(&bench, 128);
    ibv_wr_send_imm(start(&bench), htonl(9));
    ibv_wr_set_ud_addr(bench.ex, ah, bench.qp->qp_num, KEY);
    set_source(&bench, "a datagram");
    complete(&bench, IBV_WC_SEND);
    struct ibv_wc wc = alone_poll(bench.received);
    EXPECT(wc.byte_len, ==, GRH + 11);
    EXPECT(wc.src_qp, ==, bench.qp->qp_num);
    EXPECT(strcmp(bench.memory + TARGET + GRH, "a datagram"), ==, 0);
    ibv_wr_send(start(&bench)); /* to nobody */
    set_source(&bench, "lost");
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    close_bench(&bench);
}

static void move_raw(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), ==, 0);
}

static void ibv_wr_send_tso_wants_a_header_and_a_size(const void *row)
{
    struct bench bench = open_bench(IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
    uint8_t header[INLINE] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, [23] = 6, [46] = 0x50}; /* IPv4, TCP */
    move_raw(bench.qp, IBV_QPS_INIT, IBV_QP_PORT);
    move_raw(bench.qp, IBV_QPS_RTR, 0);
    move_raw(bench.qp, IBV_QPS_RTS, 0);
    ibv_wr_send_tso(start(&bench), header, 54, 0);
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    ibv_wr_send_tso(start(&bench), header, INLINE + 1, 1000);
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    ibv_wr_send_tso(start(&bench), header, 54, 100);
    ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 1000);
    complete(&bench, IBV_WC_TSO);
    close_bench(&bench);
}

/* -- batches */

static void a_batch_is_posted_as_one(const void *row)
{
    struct bench bench = open_connected();
    ibv_wr_start(bench.ex);
    for (uint64_t i = 0; i < SENDS; i++) {
        bench.ex->wr_id = i;
        bench.ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(bench.ex, bench.mr->rkey, target(&bench) + i);
        ibv_wr_set_inline_data(bench.ex, &(char){(char)('a' + i)}, 1);
    }
    alone_poll_nothing(bench.sent);
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    for (uint64_t i = 0; i < SENDS; i++)
        EXPECT(alone_poll(bench.sent).wr_id, ==, i);
    EXPECT(memcmp(bench.memory + TARGET, "abcdefgh", SENDS), ==, 0);
    close_bench(&bench);
}

/* Nothing of it was posted, and the queue has all its places. */
static void expect_untouched(struct bench *bench)
{
    alone_poll_nothing(bench->sent);
    EXPECT(alone_state(bench->qp), ==, IBV_QPS_RTS);

    for (int i = 0; i < SENDS; i++) {
        ibv_wr_rdma_write(start(bench), bench->mr->rkey, target(bench));
        set_source(bench, "again");
        complete(bench, IBV_WC_RDMA_WRITE);
    }
}

static void ibv_wr_abort_takes_the_batch_back(const void *row)
{
    struct bench bench = open_connected();
    for (int round = 0; round < 3 * SENDS; round++) {
        ibv_wr_rdma_write(start(&bench), bench.mr->rkey, target(&bench));
        set_source(&bench, "never");
        ibv_wr_rdma_write(bench.ex, bench.mr->rkey, target(&bench));
        ibv_wr_abort(bench.ex);
    }
    EXPECT(bench.memory[TARGET], ==, 0);
    expect_untouched(&bench);
    close_bench(&bench);
}

static void ibv_wr_start_and_ibv_wr_complete_of_nothing_are_fine(const void *row)
{
    struct bench bench = open_connected();
    ibv_wr_start(bench.ex);
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    expect_untouched(&bench);
    close_bench(&bench);
}

static void too_many(struct bench *bench)
{
    for (int i = 0; i <= SENDS; i++)
        ibv_wr_rdma_write(bench->ex, bench->mr->rkey, target(bench));
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
    struct ibv_mw_bind_info info = {bench->mr, target(bench), 64, IBV_ACCESS_REMOTE_WRITE};
    struct ibv_mw *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_1);
    ibv_wr_bind_mw(bench->ex, mw, ibv_inc_rkey(mw->rkey), &info);
}

static void inline_data_for_a_read(struct bench *bench)
{
    ibv_wr_rdma_read(bench->ex, bench->mr->rkey, target(bench));
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
    struct bench bench = open_connected();
    ibv_wr_rdma_write(start(&bench), bench.mr->rkey, target(&bench)); /* a good one before */
    set_source(&bench, "never");
    mistake->make(&bench);
    ibv_wr_rdma_write(bench.ex, bench.mr->rkey, target(&bench)); /* and one behind */
    EXPECT(ibv_wr_complete(bench.ex), ==, mistake->error);
    EXPECT(bench.memory[TARGET], ==, 0);
    expect_untouched(&bench);
    close_bench(&bench);
}

static void a_queue_pair_that_cannot_send_refuses_a_batch(const void *row)
{
    struct bench bench = open_bench(IBV_QPT_RC, OPS_RC);
    for (int state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
        ibv_wr_send(start(&bench));
        EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
        if (state == IBV_QPS_RESET)
            alone_initialize(bench.qp);
        else if (state == IBV_QPS_INIT)
            alone_receive_from(bench.qp, bench.qp->qp_num);
    }
    close_bench(&bench);
}

static void ibv_qp_to_qp_ex_wants_operations_that_the_type_has(const void *row)
{
    struct bench bench = open_bench(IBV_QPT_UD, OPS_UD);
    struct ibv_qp *plain = make_qp(&bench, IBV_QPT_RC, 0);
    EXPECT_TRUE(plain && !ibv_qp_to_qp_ex(plain));
    EXPECT_ERRNO(make_qp(&bench, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE), EOPNOTSUPP);
    EXPECT_ERRNO(make_qp(&bench, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
    EXPECT_ERRNO(make_qp(&bench, IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
    EXPECT_ERRNO(make_qp(&bench, IBV_QPT_RC, 1ull << 40), EOPNOTSUPP);
    close_bench(&bench);
}

static void each_builder(void)
{
    CASE(ibv_wr_send_sends);
    CASE(ibv_wr_send_imm_carries_its_value);
    CASE(ibv_wr_rdma_write_writes);
    CASE(ibv_wr_rdma_write_imm_takes_a_receive);
    CASE(ibv_wr_rdma_read_reads);
    CASE(ibv_wr_atomic_cmp_swp_swaps_what_is_equal);
    CASE(ibv_wr_atomic_fetch_add_adds);
    CASE(ibv_wr_atomic_write_writes_eight_bytes);
    CASE(ibv_wr_bind_mw_opens_and_ibv_wr_local_inv_closes);
    CASE(ibv_wr_local_inv_of_a_closed_window_fails);
    CASE(ibv_wr_send_inv_closes_a_window_of_the_receiver);
    CASE(ibv_wr_set_inline_data_is_taken_at_once);
    CASE(ibv_wr_set_inline_data_list_gathers);
    CASE(ibv_wr_set_sge_list_gathers);
    CASE(ibv_wr_set_sge_is_wanted_by_nothing_but_data);
    CASE(ibv_wr_set_ud_addr_says_to_whom);
    CASE(ibv_wr_send_tso_wants_a_header_and_a_size);
}

static void all(void)
{
    char title[160];
    each_builder();
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
