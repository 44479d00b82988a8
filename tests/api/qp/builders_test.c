/* Work requests made by the builders of extended queue pairs, ibv_wr_post(3): each of them. All in this process. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "builder_fixture.h"

/* -- each builder */

static void ibv_wr_send_sends(const void *row)
{
    struct builder builder = builder_open_connected();
    builder_post_receive(&builder, 64);
    ibv_wr_send(builder_start(&builder));
    builder_set_source(&builder, "built");
    builder_complete(&builder, IBV_WC_SEND);
    EXPECT(builder_expect_received(&builder, "built").wc_flags & IBV_WC_WITH_IMM, ==, 0);
    builder_close(&builder);
}

static void ibv_wr_send_imm_carries_its_value(const void *row)
{
    struct builder builder = builder_open_connected();
    builder_post_receive(&builder, 64);
    ibv_wr_send_imm(builder_start(&builder), htonl(0x12345678));
    builder_set_source(&builder, "with a value");
    builder_complete(&builder, IBV_WC_SEND);
    struct ibv_wc wc = builder_expect_received(&builder, "with a value");
    EXPECT(ntohl(wc.imm_data), ==, 0x12345678);
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_IMM);
    builder_close(&builder);
}

static void ibv_wr_rdma_write_writes(const void *row)
{
    struct builder builder = builder_open_connected();
    ibv_wr_rdma_write(builder_start(&builder), builder.mr->rkey, builder_target(&builder));
    builder_set_source(&builder, "written");
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(builder.memory + TARGET, "written"), ==, 0);
    builder_close(&builder);
}

static void ibv_wr_rdma_write_imm_takes_a_receive(const void *row)
{
    struct builder builder = builder_open_connected();
    builder_post_receive(&builder, 0);
    ibv_wr_rdma_write_imm(builder_start(&builder), builder.mr->rkey, builder_target(&builder), htonl(7));
    builder_set_source(&builder, "written and told");
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    struct ibv_wc wc = builder_expect_received(&builder, "written and told");
    EXPECT(wc.opcode, ==, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT(ntohl(wc.imm_data), ==, 7);
    builder_close(&builder);
}

static void ibv_wr_rdma_read_reads(const void *row)
{
    struct builder builder = builder_open_connected();
    strcpy(builder.memory + TARGET, "to be read");
    ibv_wr_rdma_read(builder_start(&builder), builder.mr->rkey, builder_target(&builder));
    ibv_wr_set_sge(builder.ex, builder.mr->lkey, (uintptr_t)builder.memory, 16);
    builder_complete(&builder, IBV_WC_RDMA_READ);
    EXPECT(strcmp(builder.memory, "to be read"), ==, 0);
    builder_close(&builder);
}

static void ibv_wr_atomic_cmp_swp_swaps_what_is_equal(const void *row)
{
    struct builder builder = builder_open_connected();
    memcpy(builder.memory + TARGET, &(uint64_t){5}, 8);
    for (uint64_t wanted = 4; wanted <= 5; wanted++) {
        ibv_wr_atomic_cmp_swp(builder_start(&builder), builder.mr->rkey, builder_target(&builder), wanted, 77);
        ibv_wr_set_sge(builder.ex, builder.mr->lkey, (uintptr_t)builder.memory, 8);
        builder_complete(&builder, IBV_WC_COMP_SWAP);
        EXPECT(builder_word_at(&builder, 0), ==, 5);
        EXPECT(builder_word_at(&builder, TARGET), ==, wanted == 5 ? 77 : 5);
    }
    builder_close(&builder);
}

static void ibv_wr_atomic_fetch_add_adds(const void *row)
{
    struct builder builder = builder_open_connected();
    memcpy(builder.memory + TARGET, &(uint64_t){5}, 8);
    ibv_wr_atomic_fetch_add(builder_start(&builder), builder.mr->rkey, builder_target(&builder), 3);
    ibv_wr_set_sge(builder.ex, builder.mr->lkey, (uintptr_t)builder.memory, 8);
    builder_complete(&builder, IBV_WC_FETCH_ADD);
    EXPECT(builder_word_at(&builder, 0), ==, 5);
    EXPECT(builder_word_at(&builder, TARGET), ==, 8);
    builder_close(&builder);
}

static void ibv_wr_atomic_write_writes_eight_bytes(const void *row)
{
    struct builder builder = builder_open_connected();
    uint64_t value = 0x1122334455667788;
    ibv_wr_atomic_write(builder_start(&builder), builder.mr->rkey, builder_target(&builder), &value);
    value = 0; /* it was taken when it was given */
    builder_complete(&builder, IBV_WC_ATOMIC_WRITE);
    EXPECT(builder_word_at(&builder, TARGET), ==, 0x1122334455667788);
    EXPECT(builder_word_at(&builder, TARGET + 8), ==, 0);
    builder_close(&builder);
}

/* The builder that release 45 has added, by value; it is the last member of ibv_qp_ex, after wr_atomic_write of 44. */
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

static struct builder open_for_flush(void)
{
    struct builder builder = builder_open(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | BUILDS_FLUSH);
    local_initialize(builder.qp);
    local_receive_from(builder.qp, builder.qp->qp_num);
    local_send(builder.qp);
    struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH | ACCESS_FLUSH_PERSISTENT};
    EXPECT(ibv_modify_qp(builder.qp, &attr, IBV_QP_ACCESS_FLAGS), ==, 0);
    EXPECT(ibv_dereg_mr(builder.mr), ==, 0);
    builder.mr =
        ibv_reg_mr(builder.pd, builder.memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH);
    EXPECT_TRUE(builder.mr);
    return builder;
}

static void ibv_wr_flush_ends_behind_the_write_before_it(const void *row)
{
    struct builder builder = open_for_flush();
    for (unsigned level = OF_RANGE; level <= OF_REGION; level++) {
        struct ibv_qp_ex *ex = builder_start(&builder);
        ex->wr_flags = 0;
        ibv_wr_rdma_write(ex, builder.mr->rkey, builder_target(&builder));
        builder_set_source(&builder, level ? "region" : "range");
        ex->wr_flags = IBV_SEND_SIGNALED;
        build_flush(ex, builder.mr->rkey, level ? 0 : builder_target(&builder), level ? 0 : 6, TO_ALL, (uint8_t)level);
        builder_complete(&builder, (enum ibv_wc_opcode)COMPLETES_FLUSH);
        EXPECT(strcmp(builder.memory + TARGET, level ? "region" : "range"), ==, 0);
    }
    builder_close(&builder);
}

static void expect_flush_refused(uint8_t type, uint32_t rkey_off, uint64_t address_off)
{
    struct builder builder = open_for_flush();
    build_flush(builder_start(&builder), builder.mr->rkey + rkey_off, builder_target(&builder) + address_off, 8, type,
                OF_RANGE);
    EXPECT(ibv_wr_complete(builder.ex), ==, 0);
    EXPECT(local_poll(builder.sent).status, ==, IBV_WC_WR_FLUSH_ERR); /* by itself as responder, which fails first */
    EXPECT(local_event(builder.context).event_type, ==, IBV_EVENT_QP_ACCESS_ERR);
    builder_close(&builder);
}

static void ibv_wr_flush_of_what_the_region_does_not_allow_is_refused(const void *row)
{
    expect_flush_refused(TO_STORAGE, 0, 0);
    expect_flush_refused(TO_ALL, 1, 0);
    expect_flush_refused(TO_ALL, 0, 4096);
}

static void ibv_wr_flush_wants_a_type_and_a_level_that_exist(const void *row)
{
    struct builder builder = open_for_flush();
    static const struct {
        uint8_t type, level;
        size_t length;
    } wrong[] = {{0, OF_RANGE, 8}, {4, OF_RANGE, 8}, {TO_ALL, 2, 8}, {TO_ALL, OF_RANGE, (size_t)UINT32_MAX + 1}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        build_flush(builder_start(&builder), builder.mr->rkey, 0, wrong[i].length, wrong[i].type, wrong[i].level);
        EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
    }
    builder_close(&builder);
}

/* The parameters of a flush are the builder's: a work request of ibv_post_send has no place for them. */
static void a_flush_is_only_for_builders_of_reliable_services(const void *row)
{
    struct builder builder = open_for_flush();
    struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)FLUSH, .send_flags = IBV_SEND_SIGNALED}, *bad;
    EXPECT(ibv_post_send(builder.qp, &wr, &bad), ==, EINVAL);
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_UC, BUILDS_FLUSH), EOPNOTSUPP);
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_UD, BUILDS_FLUSH), EOPNOTSUPP);
    builder_close(&builder);
}

static void memory_that_persists_can_not_be_registered(const void *row)
{
    struct builder builder = open_for_flush();
    EXPECT_ERRNO(ibv_reg_mr(builder.pd, builder.memory, 4096, IBV_ACCESS_LOCAL_WRITE | ACCESS_FLUSH_PERSISTENT),
                 EINVAL);
    builder_close(&builder);
}

/* A window that is bound, written through, and invalidated by the one side or by the other. */
static uint32_t bind_window(struct builder *builder, struct ibv_mw **mw)
{
    *mw = ibv_alloc_mw(builder->pd, IBV_MW_TYPE_2);
    EXPECT_TRUE(*mw);
    uint32_t rkey = ibv_inc_rkey((*mw)->rkey);
    struct ibv_mw_bind_info info = {builder->mr, builder_target(builder), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(builder_start(builder), *mw, rkey, &info);
    builder_complete(builder, IBV_WC_BIND_MW);
    ibv_wr_rdma_write(builder_start(builder), rkey, builder_target(builder));
    builder_set_source(builder, "through the window");
    builder_complete(builder, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(builder->memory + TARGET, "through the window"), ==, 0);
    return rkey;
}

static void expect_closed(struct builder *builder, uint32_t rkey)
{
    ibv_wr_rdma_write(builder_start(builder), rkey, builder_target(builder));
    builder_set_source(builder, "shut");
    EXPECT(ibv_wr_complete(builder->ex), ==, 0);
    /* As responder the queue pair enters ERR, which flushes the work before the refusal reaches it as requester. */
    EXPECT(local_poll(builder->sent).status, ==, IBV_WC_WR_FLUSH_ERR);
    EXPECT(local_event(builder->context).event_type, ==, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT(strcmp(builder->memory + TARGET, "shut"), !=, 0);
}

static void ibv_wr_bind_mw_opens_and_ibv_wr_local_inv_closes(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_mw *mw;
    uint32_t rkey = bind_window(&builder, &mw);
    ibv_wr_local_inv(builder_start(&builder), rkey);
    builder_complete(&builder, IBV_WC_LOCAL_INV);
    expect_closed(&builder, rkey);
    builder_close(&builder);
}

/* An operation without an opcode on the wire, and one that the device does not claim to have. */
static void what_a_service_lacks_is_not_supported(const void *row)
{
    struct builder builder = builder_open_connected();
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_UC, IBV_QP_EX_WITH_SEND_WITH_INV), EOPNOTSUPP);
    EXPECT_ERRNO(builder_make_qp(&builder, IBV_QPT_UD, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
    builder_close(&builder);
}

static void a_builder_that_nobody_asked_for_works(const void *row)
{
    struct builder builder = builder_open(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
    local_initialize(builder.qp);
    local_receive_from(builder.qp, builder.qp->qp_num);
    local_send(builder.qp);
    ibv_wr_rdma_write(builder_start(&builder), builder.mr->rkey, builder_target(&builder));
    builder_set_source(&builder, "unasked");
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    EXPECT(strcmp(builder.memory + TARGET, "unasked"), ==, 0);
    builder_close(&builder);
}

static void ibv_wr_bind_mw_takes_the_low_bits_of_the_key(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_mw *mw = ibv_alloc_mw(builder.pd, IBV_MW_TYPE_2);
    uint32_t rkey = ibv_inc_rkey(mw->rkey);
    struct ibv_mw_bind_info info = {builder.mr, builder_target(&builder), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(builder_start(&builder), mw, rkey ^ 0x12345600, &info);
    builder_complete(&builder, IBV_WC_BIND_MW);
    EXPECT(mw->rkey, ==, rkey);
    ibv_wr_rdma_write(builder_start(&builder), rkey, builder_target(&builder));
    builder_set_source(&builder, "through the window");
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    builder_close(&builder);
}

static void a_bind_that_is_not_posted_leaves_the_window_its_key(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_mw *mw = ibv_alloc_mw(builder.pd, IBV_MW_TYPE_2);
    uint32_t rkey = mw->rkey;
    struct ibv_mw_bind_info info = {builder.mr, builder_target(&builder), 64, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_bind_mw(builder_start(&builder), mw, ibv_inc_rkey(rkey), &info);
    ibv_wr_abort(builder.ex);
    EXPECT(mw->rkey, ==, rkey);
    ibv_wr_bind_mw(builder_start(&builder), mw, ibv_inc_rkey(rkey), &info);
    ibv_wr_bind_mw(builder.ex, mw, ibv_inc_rkey(mw->rkey), &info);
    ibv_wr_send_tso(builder.ex, "", 0, 0); /* which only raw packets have */
    EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
    EXPECT(mw->rkey, ==, rkey);
    builder_close(&builder);
}

static void ibv_wr_local_inv_of_a_closed_window_fails(const void *row)
{
    struct builder builder = builder_open_connected();
    ibv_wr_local_inv(builder_start(&builder), builder.mr->rkey); /* a region's key cannot be invalidated */
    EXPECT(ibv_wr_complete(builder.ex), ==, 0);
    EXPECT(local_poll(builder.sent).status, !=, IBV_WC_SUCCESS);
    EXPECT(local_state(builder.qp), ==, IBV_QPS_ERR);
    builder_close(&builder);
}

static void ibv_wr_send_inv_closes_a_window_of_the_receiver(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_mw *mw;
    uint32_t rkey = bind_window(&builder, &mw);
    builder_post_receive(&builder, 64);
    ibv_wr_send_inv(builder_start(&builder), rkey);
    builder_set_source(&builder, "shut it");
    builder_complete(&builder, IBV_WC_SEND);
    struct ibv_wc wc = builder_expect_received(&builder, "shut it");
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_INV);
    EXPECT(wc.invalidated_rkey, ==, rkey);
    expect_closed(&builder, rkey);
    builder_close(&builder);
}

static void ibv_wr_set_inline_data_is_taken_at_once(const void *row)
{
    struct builder builder = builder_open_connected();
    char text[] = "in line";
    builder_post_receive(&builder, 64);
    ibv_wr_send(builder_start(&builder));
    ibv_wr_set_inline_data(builder.ex, text, sizeof text);
    memset(text, 'x', sizeof text);
    builder_complete(&builder, IBV_WC_SEND);
    EXPECT(builder_expect_received(&builder, "in line").byte_len, ==, sizeof text);
    builder_close(&builder);
}

static void ibv_wr_set_inline_data_list_gathers(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_data_buf parts[] = {{"from ", 5}, {"", 0}, {"several ", 8}, {"places", 7}};
    builder_post_receive(&builder, 64);
    ibv_wr_send(builder_start(&builder));
    ibv_wr_set_inline_data_list(builder.ex, COUNT(parts), parts);
    builder_complete(&builder, IBV_WC_SEND);
    EXPECT(builder_expect_received(&builder, "from several places").byte_len, ==, 20);
    builder_close(&builder);
}

static void ibv_wr_set_sge_list_gathers(const void *row)
{
    struct builder builder = builder_open_connected();
    strcpy(builder.memory, "one ");
    strcpy(builder.memory + 100, "two");
    struct ibv_sge list[] = {{(uintptr_t)builder.memory, 4, builder.mr->lkey},
                             {(uintptr_t)builder.memory + 100, 4, builder.mr->lkey}};
    builder_post_receive(&builder, 64);
    ibv_wr_send(builder_start(&builder));
    ibv_wr_set_sge_list(builder.ex, COUNT(list), list);
    builder_complete(&builder, IBV_WC_SEND);
    EXPECT(builder_expect_received(&builder, "one two").byte_len, ==, 8);
    builder_close(&builder);
}

static void ibv_wr_set_sge_is_wanted_by_nothing_but_data(const void *row)
{
    struct builder builder = builder_open_connected();
    builder_post_receive(&builder, 64);
    ibv_wr_send(builder_start(&builder)); /* no data: an empty message */
    builder_complete(&builder, IBV_WC_SEND);
    EXPECT(local_poll(builder.received).byte_len, ==, 0);
    builder_close(&builder);
}

static struct ibv_ah *connect_datagrams(struct builder *builder)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    local_initialize(builder->qp);
    local_receive_from(builder->qp, 0);
    local_send(builder->qp);
    EXPECT(ibv_query_gid(builder->context, 1, 0, &attr.grh.dgid), ==, 0);
    struct ibv_ah *ah = ibv_create_ah(builder->pd, &attr);
    EXPECT_TRUE(ah);
    return ah;
}

static void ibv_wr_set_ud_addr_says_to_whom(const void *row)
{
    enum { GRH = 40, KEY = 0x11 };
    struct builder builder = builder_open(IBV_QPT_UD, OPS_UD);
    struct ibv_ah *ah = connect_datagrams(&builder);
    builder_post_receive(&builder, 128);
    ibv_wr_send_imm(builder_start(&builder), htonl(9));
    ibv_wr_set_ud_addr(builder.ex, ah, builder.qp->qp_num, KEY);
    builder_set_source(&builder, "a datagram");
    builder_complete(&builder, IBV_WC_SEND);
    struct ibv_wc wc = local_poll(builder.received);
    EXPECT(wc.byte_len, ==, GRH + 11);
    EXPECT(wc.src_qp, ==, builder.qp->qp_num);
    EXPECT(strcmp(builder.memory + TARGET + GRH, "a datagram"), ==, 0);
    ibv_wr_send(builder_start(&builder)); /* without a destination */
    builder_set_source(&builder, "lost");
    EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
    builder_close(&builder);
}

static void move_raw(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), ==, 0);
}

static void ibv_wr_send_tso_wants_a_header_and_a_size(const void *row)
{
    struct builder builder = builder_open(IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
    uint8_t header[INLINE] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, [23] = 6, [46] = 0x50}; /* IPv4, TCP */
    move_raw(builder.qp, IBV_QPS_INIT, IBV_QP_PORT);
    move_raw(builder.qp, IBV_QPS_RTR, 0);
    move_raw(builder.qp, IBV_QPS_RTS, 0);
    ibv_wr_send_tso(builder_start(&builder), header, 54, 0);
    EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
    ibv_wr_send_tso(builder_start(&builder), header, INLINE + 1, 1000);
    EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
    ibv_wr_send_tso(builder_start(&builder), header, 54, 100);
    ibv_wr_set_sge(builder.ex, builder.mr->lkey, (uintptr_t)builder.memory, 1000);
    builder_complete(&builder, IBV_WC_TSO);
    builder_close(&builder);
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
