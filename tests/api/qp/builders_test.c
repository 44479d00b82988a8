/* Work requests made by the builders of extended queue pairs, ibv_wr_post(3): each of them. All in this process. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "builder_fixture.h"

/* -- each builder */

static void ibv_wr_send_sends(const void *row)
{
    struct bench bench = bench_open_connected();
    bench_post_receive(&bench, 64);
    ibv_wr_send(bench_start(&bench));
    bench_set_source(&bench, "built");
    bench_complete(&bench, IBV_WC_SEND);
    EXPECT(bench_expect_received(&bench, "built").wc_flags & IBV_WC_WITH_IMM, ==, 0);
    bench_close(&bench);
}

static void ibv_wr_send_imm_carries_its_value(const void *row)
{
    struct bench bench = bench_open_connected();
    bench_post_receive(&bench, 64);
    ibv_wr_send_imm(bench_start(&bench), htonl(0x12345678));
    bench_set_source(&bench, "with a value");
    bench_complete(&bench, IBV_WC_SEND);
    struct ibv_wc wc = bench_expect_received(&bench, "with a value");
    EXPECT(ntohl(wc.imm_data), ==, 0x12345678);
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_IMM);
    bench_close(&bench);
}

static void ibv_wr_rdma_write_writes(const void *row)
{
    struct bench bench = bench_open_connected();
    ibv_wr_rdma_write(bench_start(&bench), bench.mr->rkey, bench_target(&bench));
    bench_set_source(&bench, "written");
    bench_complete(&bench, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(bench.memory + TARGET, "written"), ==, 0);
    bench_close(&bench);
}

static void ibv_wr_rdma_write_imm_takes_a_receive(const void *row)
{
    struct bench bench = bench_open_connected();
    bench_post_receive(&bench, 0);
    ibv_wr_rdma_write_imm(bench_start(&bench), bench.mr->rkey, bench_target(&bench), htonl(7));
    bench_set_source(&bench, "written and told");
    bench_complete(&bench, IBV_WC_RDMA_WRITE);
    struct ibv_wc wc = bench_expect_received(&bench, "written and told");
    EXPECT(wc.opcode, ==, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT(ntohl(wc.imm_data), ==, 7);
    bench_close(&bench);
}

static void ibv_wr_rdma_read_reads(const void *row)
{
    struct bench bench = bench_open_connected();
    strcpy(bench.memory + TARGET, "to be read");
    ibv_wr_rdma_read(bench_start(&bench), bench.mr->rkey, bench_target(&bench));
    ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 16);
    bench_complete(&bench, IBV_WC_RDMA_READ);
    EXPECT(strcmp(bench.memory, "to be read"), ==, 0);
    bench_close(&bench);
}

static void ibv_wr_atomic_cmp_swp_swaps_what_is_equal(const void *row)
{
    struct bench bench = bench_open_connected();
    memcpy(bench.memory + TARGET, &(uint64_t){5}, 8);
    for (uint64_t wanted = 4; wanted <= 5; wanted++) {
        ibv_wr_atomic_cmp_swp(bench_start(&bench), bench.mr->rkey, bench_target(&bench), wanted, 77);
        ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 8);
        bench_complete(&bench, IBV_WC_COMP_SWAP);
        EXPECT(bench_word_at(&bench, 0), ==, 5);
        EXPECT(bench_word_at(&bench, TARGET), ==, wanted == 5 ? 77 : 5);
    }
    bench_close(&bench);
}

static void ibv_wr_atomic_fetch_add_adds(const void *row)
{
    struct bench bench = bench_open_connected();
    memcpy(bench.memory + TARGET, &(uint64_t){5}, 8);
    ibv_wr_atomic_fetch_add(bench_start(&bench), bench.mr->rkey, bench_target(&bench), 3);
    ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 8);
    bench_complete(&bench, IBV_WC_FETCH_ADD);
    EXPECT(bench_word_at(&bench, 0), ==, 5);
    EXPECT(bench_word_at(&bench, TARGET), ==, 8);
    bench_close(&bench);
}

static void ibv_wr_atomic_write_writes_eight_bytes(const void *row)
{
    struct bench bench = bench_open_connected();
    uint64_t value = 0x1122334455667788;
    ibv_wr_atomic_write(bench_start(&bench), bench.mr->rkey, bench_target(&bench), &value);
    value = 0; /* it was taken when it was given */
    bench_complete(&bench, IBV_WC_ATOMIC_WRITE);
    EXPECT(bench_word_at(&bench, TARGET), ==, 0x1122334455667788);
    EXPECT(bench_word_at(&bench, TARGET + 8), ==, 0);
    bench_close(&bench);
}

/* What release 45 has added, by value; its builder is the last member of ibv_qp_ex, behind wr_atomic_write of 44. */
enum {
    FLUSH = 14,
    COMPLETES_FLUSH = 8,
    BUILDS_FLUSH = 1 << 11,
    ACCESS_FLUSH = 1 << 8,
    ACCESS_FLUSH_PERSISTENT = 1 << 9,
    TO_ALL = 1,
    TO_STORAGE = 2,
    OF_RANGE = 0,
    OF_REGION = 1,
    WR_FLUSH_AT = offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void (*)(void)),
};

static void build_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
                        uint8_t level)
{
    void (*wr_flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
    memcpy(&wr_flush, (char *)ex + WR_FLUSH_AT, sizeof wr_flush);
    wr_flush(ex, rkey, address, length, type, level);
}

static struct bench open_for_flush(void)
{
    struct bench bench = bench_open(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | BUILDS_FLUSH);
    alone_initialize(bench.qp);
    alone_receive_from(bench.qp, bench.qp->qp_num);
    alone_send(bench.qp);
    struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH | ACCESS_FLUSH_PERSISTENT};
    EXPECT(ibv_modify_qp(bench.qp, &attr, IBV_QP_ACCESS_FLAGS), ==, 0);
    EXPECT(ibv_dereg_mr(bench.mr), ==, 0);
    bench.mr =
        ibv_reg_mr(bench.pd, bench.memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH);
    EXPECT_TRUE(bench.mr);
    return bench;
}

static void ibv_wr_flush_ends_behind_the_write_before_it(const void *row)
{
    struct bench bench = open_for_flush();
    for (unsigned level = OF_RANGE; level <= OF_REGION; level++) {
        struct ibv_qp_ex *ex = bench_start(&bench);
        ex->wr_flags = 0;
        ibv_wr_rdma_write(ex, bench.mr->rkey, bench_target(&bench));
        bench_set_source(&bench, level ? "region" : "range");
        ex->wr_flags = IBV_SEND_SIGNALED;
        build_flush(ex, bench.mr->rkey, level ? 0 : bench_target(&bench), level ? 0 : 6, TO_ALL, (uint8_t)level);
        bench_complete(&bench, (enum ibv_wc_opcode)COMPLETES_FLUSH);
        EXPECT(strcmp(bench.memory + TARGET, level ? "region" : "range"), ==, 0);
    }
    bench_close(&bench);
}

static void expect_flush_refused(uint8_t type, uint32_t rkey_off, uint64_t address_off)
{
    struct bench bench = open_for_flush();
    build_flush(bench_start(&bench), bench.mr->rkey + rkey_off, bench_target(&bench) + address_off, 8, type, OF_RANGE);
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    EXPECT(alone_poll(bench.sent).status, ==, IBV_WC_WR_FLUSH_ERR); /* by itself as responder, which fails first */
    EXPECT(alone_event(bench.context).event_type, ==, IBV_EVENT_QP_ACCESS_ERR);
    bench_close(&bench);
}

static void ibv_wr_flush_of_what_the_region_does_not_allow_is_refused(const void *row)
{
    expect_flush_refused(TO_STORAGE, 0, 0);
    expect_flush_refused(TO_ALL, 1, 0);
    expect_flush_refused(TO_ALL, 0, 4096);
}

static void ibv_wr_flush_wants_a_type_and_a_level_that_exist(const void *row)
{
    struct bench bench = open_for_flush();
    static const struct {
        uint8_t type, level;
        size_t length;
    } wrong[] = {{0, OF_RANGE, 8}, {4, OF_RANGE, 8}, {TO_ALL, 2, 8}, {TO_ALL, OF_RANGE, (size_t)UINT32_MAX + 1}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        build_flush(bench_start(&bench), bench.mr->rkey, 0, wrong[i].length, wrong[i].type, wrong[i].level);
        EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    }
    bench_close(&bench);
}

/* Its parameters are those of the builder: a work request of ibv_post_send has no place for them. */
static void a_flush_is_only_for_builders_of_reliable_services(const void *row)
{
    struct bench bench = open_for_flush();
    struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)FLUSH, .send_flags = IBV_SEND_SIGNALED}, *bad;
    EXPECT(ibv_post_send(bench.qp, &wr, &bad), ==, EINVAL);
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_UC, BUILDS_FLUSH), EOPNOTSUPP);
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_UD, BUILDS_FLUSH), EOPNOTSUPP);
    bench_close(&bench);
}

static void memory_that_persists_can_not_be_registered(const void *row)
{
    struct bench bench = open_for_flush();
    EXPECT_ERRNO(ibv_reg_mr(bench.pd, bench.memory, 4096, IBV_ACCESS_LOCAL_WRITE | ACCESS_FLUSH_PERSISTENT), EINVAL);
    bench_close(&bench);
}

/* A window that is bound, written through, and invalidated by the one side or by the other. */
static uint32_t bind_window(struct bench *bench, struct ibv_mw **mw)
{
    *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_2);
    EXPECT_TRUE(*mw);
    uint32_t rkey = ibv_inc_rkey((*mw)->rkey);
    struct ibv_mw_bind_info info = {bench->mr, bench_target(bench), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(bench_start(bench), *mw, rkey, &info);
    bench_complete(bench, IBV_WC_BIND_MW);
    ibv_wr_rdma_write(bench_start(bench), rkey, bench_target(bench));
    bench_set_source(bench, "through the window");
    bench_complete(bench, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(bench->memory + TARGET, "through the window"), ==, 0);
    return rkey;
}

static void expect_closed(struct bench *bench, uint32_t rkey)
{
    ibv_wr_rdma_write(bench_start(bench), rkey, bench_target(bench));
    bench_set_source(bench, "shut");
    EXPECT(ibv_wr_complete(bench->ex), ==, 0);
    /* As responder the queue pair goes to error, which flushes the work before the refusal comes to it as requester. */
    EXPECT(alone_poll(bench->sent).status, ==, IBV_WC_WR_FLUSH_ERR);
    EXPECT(alone_event(bench->context).event_type, ==, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT(strcmp(bench->memory + TARGET, "shut"), !=, 0);
}

static void ibv_wr_bind_mw_opens_and_ibv_wr_local_inv_closes(const void *row)
{
    struct bench bench = bench_open_connected();
    struct ibv_mw *mw;
    uint32_t rkey = bind_window(&bench, &mw);
    ibv_wr_local_inv(bench_start(&bench), rkey);
    bench_complete(&bench, IBV_WC_LOCAL_INV);
    expect_closed(&bench, rkey);
    bench_close(&bench);
}

/* What has no opcode on the wire, and what the device does not say that it can. */
static void what_a_service_lacks_is_not_supported(const void *row)
{
    struct bench bench = bench_open_connected();
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_UC, IBV_QP_EX_WITH_SEND_WITH_INV), EOPNOTSUPP);
    EXPECT_ERRNO(bench_make_qp(&bench, IBV_QPT_UD, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
    bench_close(&bench);
}

static void a_builder_that_nobody_asked_for_works(const void *row)
{
    struct bench bench = bench_open(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
    alone_initialize(bench.qp);
    alone_receive_from(bench.qp, bench.qp->qp_num);
    alone_send(bench.qp);
    ibv_wr_rdma_write(bench_start(&bench), bench.mr->rkey, bench_target(&bench));
    bench_set_source(&bench, "unasked");
    bench_complete(&bench, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(bench.memory + TARGET, "unasked"), ==, 0);
    bench_close(&bench);
}

static void ibv_wr_bind_mw_takes_the_low_bits_of_the_key(const void *row)
{
    struct bench bench = bench_open_connected();
    struct ibv_mw *mw = ibv_alloc_mw(bench.pd, IBV_MW_TYPE_2);
    uint32_t rkey = ibv_inc_rkey(mw->rkey);
    struct ibv_mw_bind_info info = {bench.mr, bench_target(&bench), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(bench_start(&bench), mw, rkey ^ 0x12345600, &info);
    bench_complete(&bench, IBV_WC_BIND_MW);
    EXPECT(mw->rkey, ==, rkey);
    ibv_wr_rdma_write(bench_start(&bench), rkey, bench_target(&bench));
    bench_set_source(&bench, "through the window");
    bench_complete(&bench, IBV_WC_RDMA_WRITE);
    bench_close(&bench);
}

static void a_bind_that_is_not_posted_leaves_the_window_its_key(const void *row)
{
    struct bench bench = bench_open_connected();
    struct ibv_mw *mw = ibv_alloc_mw(bench.pd, IBV_MW_TYPE_2);
    uint32_t rkey = mw->rkey;
    struct ibv_mw_bind_info info = {bench.mr, bench_target(&bench), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(bench_start(&bench), mw, ibv_inc_rkey(rkey), &info);
    ibv_wr_abort(bench.ex);
    EXPECT(mw->rkey, ==, rkey);
    ibv_wr_bind_mw(bench_start(&bench), mw, ibv_inc_rkey(rkey), &info);
    ibv_wr_bind_mw(bench.ex, mw, ibv_inc_rkey(mw->rkey), &info);
    ibv_wr_send_tso(bench.ex, "", 0, 0); /* which only raw packets have */
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    EXPECT(mw->rkey, ==, rkey);
    bench_close(&bench);
}

static void ibv_wr_local_inv_of_a_closed_window_fails(const void *row)
{
    struct bench bench = bench_open_connected();
    ibv_wr_local_inv(bench_start(&bench), bench.mr->rkey); /* a region's key cannot be invalidated */
    EXPECT(ibv_wr_complete(bench.ex), ==, 0);
    EXPECT(alone_poll(bench.sent).status, !=, IBV_WC_SUCCESS);
    EXPECT(alone_state(bench.qp), ==, IBV_QPS_ERR);
    bench_close(&bench);
}

static void ibv_wr_send_inv_closes_a_window_of_the_receiver(const void *row)
{
    struct bench bench = bench_open_connected();
    struct ibv_mw *mw;
    uint32_t rkey = bind_window(&bench, &mw);
    bench_post_receive(&bench, 64);
    ibv_wr_send_inv(bench_start(&bench), rkey);
    bench_set_source(&bench, "shut it");
    bench_complete(&bench, IBV_WC_SEND);
    struct ibv_wc wc = bench_expect_received(&bench, "shut it");
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_INV);
    EXPECT(wc.invalidated_rkey, ==, rkey);
    expect_closed(&bench, rkey);
    bench_close(&bench);
}

static void ibv_wr_set_inline_data_is_taken_at_once(const void *row)
{
    struct bench bench = bench_open_connected();
    char text[] = "in line";
    bench_post_receive(&bench, 64);
    ibv_wr_send(bench_start(&bench));
    ibv_wr_set_inline_data(bench.ex, text, sizeof text);
    memset(text, 'x', sizeof text);
    bench_complete(&bench, IBV_WC_SEND);
    EXPECT(bench_expect_received(&bench, "in line").byte_len, ==, sizeof text);
    bench_close(&bench);
}

static void ibv_wr_set_inline_data_list_gathers(const void *row)
{
    struct bench bench = bench_open_connected();
    struct ibv_data_buf parts[] = {{"from ", 5}, {"", 0}, {"several ", 8}, {"places", 7}};
    bench_post_receive(&bench, 64);
    ibv_wr_send(bench_start(&bench));
    ibv_wr_set_inline_data_list(bench.ex, COUNT(parts), parts);
    bench_complete(&bench, IBV_WC_SEND);
    EXPECT(bench_expect_received(&bench, "from several places").byte_len, ==, 20);
    bench_close(&bench);
}

static void ibv_wr_set_sge_list_gathers(const void *row)
{
    struct bench bench = bench_open_connected();
    strcpy(bench.memory, "one ");
    strcpy(bench.memory + 100, "two");
    struct ibv_sge list[] = {{(uintptr_t)bench.memory, 4, bench.mr->lkey},
                             {(uintptr_t)bench.memory + 100, 4, bench.mr->lkey}};
    bench_post_receive(&bench, 64);
    ibv_wr_send(bench_start(&bench));
    ibv_wr_set_sge_list(bench.ex, COUNT(list), list);
    bench_complete(&bench, IBV_WC_SEND);
    EXPECT(bench_expect_received(&bench, "one two").byte_len, ==, 8);
    bench_close(&bench);
}

static void ibv_wr_set_sge_is_wanted_by_nothing_but_data(const void *row)
{
    struct bench bench = bench_open_connected();
    bench_post_receive(&bench, 64);
    ibv_wr_send(bench_start(&bench)); /* no data: an empty message */
    bench_complete(&bench, IBV_WC_SEND);
    EXPECT(alone_poll(bench.received).byte_len, ==, 0);
    bench_close(&bench);
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
    struct bench bench = bench_open(IBV_QPT_UD, OPS_UD);
    struct ibv_ah *ah = connect_datagrams(&bench);
    bench_post_receive(&bench, 128);
    ibv_wr_send_imm(bench_start(&bench), htonl(9));
    ibv_wr_set_ud_addr(bench.ex, ah, bench.qp->qp_num, KEY);
    bench_set_source(&bench, "a datagram");
    bench_complete(&bench, IBV_WC_SEND);
    struct ibv_wc wc = alone_poll(bench.received);
    EXPECT(wc.byte_len, ==, GRH + 11);
    EXPECT(wc.src_qp, ==, bench.qp->qp_num);
    EXPECT(strcmp(bench.memory + TARGET + GRH, "a datagram"), ==, 0);
    ibv_wr_send(bench_start(&bench)); /* to nobody */
    bench_set_source(&bench, "lost");
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    bench_close(&bench);
}

static void move_raw(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), ==, 0);
}

static void ibv_wr_send_tso_wants_a_header_and_a_size(const void *row)
{
    struct bench bench = bench_open(IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
    uint8_t header[INLINE] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, [23] = 6, [46] = 0x50}; /* IPv4, TCP */
    move_raw(bench.qp, IBV_QPS_INIT, IBV_QP_PORT);
    move_raw(bench.qp, IBV_QPS_RTR, 0);
    move_raw(bench.qp, IBV_QPS_RTS, 0);
    ibv_wr_send_tso(bench_start(&bench), header, 54, 0);
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    ibv_wr_send_tso(bench_start(&bench), header, INLINE + 1, 1000);
    EXPECT(ibv_wr_complete(bench.ex), ==, EINVAL);
    ibv_wr_send_tso(bench_start(&bench), header, 54, 100);
    ibv_wr_set_sge(bench.ex, bench.mr->lkey, (uintptr_t)bench.memory, 1000);
    bench_complete(&bench, IBV_WC_TSO);
    bench_close(&bench);
}

static void all(void)
{
    CASE(ibv_wr_send_sends);
    CASE(ibv_wr_send_imm_carries_its_value);
    CASE(ibv_wr_rdma_write_writes);
    CASE(ibv_wr_rdma_write_imm_takes_a_receive);
    CASE(ibv_wr_rdma_read_reads);
    CASE(ibv_wr_atomic_cmp_swp_swaps_what_is_equal);
    CASE(ibv_wr_atomic_fetch_add_adds);
    CASE(ibv_wr_atomic_write_writes_eight_bytes);
    CASE(ibv_wr_flush_ends_behind_the_write_before_it);
    CASE(ibv_wr_flush_of_what_the_region_does_not_allow_is_refused);
    CASE(ibv_wr_flush_wants_a_type_and_a_level_that_exist);
    CASE(a_flush_is_only_for_builders_of_reliable_services);
    CASE(memory_that_persists_can_not_be_registered);
    CASE(ibv_wr_bind_mw_opens_and_ibv_wr_local_inv_closes);
    CASE(what_a_service_lacks_is_not_supported);
    CASE(a_builder_that_nobody_asked_for_works);
    CASE(ibv_wr_bind_mw_takes_the_low_bits_of_the_key);
    CASE(a_bind_that_is_not_posted_leaves_the_window_its_key);
    CASE(ibv_wr_local_inv_of_a_closed_window_fails);
    CASE(ibv_wr_send_inv_closes_a_window_of_the_receiver);
    CASE(ibv_wr_set_inline_data_is_taken_at_once);
    CASE(ibv_wr_set_inline_data_list_gathers);
    CASE(ibv_wr_set_sge_list_gathers);
    CASE(ibv_wr_set_sge_is_wanted_by_nothing_but_data);
    CASE(ibv_wr_set_ud_addr_says_to_whom);
    CASE(ibv_wr_send_tso_wants_a_header_and_a_size);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
