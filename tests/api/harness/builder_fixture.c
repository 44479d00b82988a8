#include "builder_fixture.h"

#include <stdlib.h>
#include <string.h>

struct ibv_qp *builder_make_qp(struct builder *builder, enum ibv_qp_type type, uint64_t operations)
{
    struct ibv_qp_init_attr_ex init = {
        .qp_type = type,
        .send_cq = builder->sent,
        .recv_cq = builder->received,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = SENDS, .max_send_sge = 2, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = builder->pd,
        .send_ops_flags = operations,
    };
    init.cap.max_inline_data = INLINE;
    if (type == IBV_QPT_RAW_PACKET) {
        init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
        init.max_tso_header = INLINE;
    }
    return ibv_create_qp_ex(builder->context, &init);
}

struct builder builder_open(enum ibv_qp_type type, uint64_t operations)
{
    struct builder builder = {.context = local_open()};
    builder.pd = ibv_alloc_pd(builder.context);
    builder.sent = ibv_create_cq(builder.context, 32, NULL, NULL, 0);
    builder.received = ibv_create_cq(builder.context, 32, NULL, NULL, 0);
    void *memory = aligned_alloc(4096, 4096);
    EXPECT_TRUE(builder.pd && builder.sent && builder.received && memory);
    memset(memory, 0, 4096);
    builder.mr = ibv_reg_mr(builder.pd, memory, 4096,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    builder.qp = builder_make_qp(&builder, type, operations);
    EXPECT_TRUE(builder.mr && builder.qp);
    builder.ex = ibv_qp_to_qp_ex(builder.qp);
    EXPECT_TRUE(builder.ex);
    builder.memory = memory;
    return builder;
}

struct builder builder_open_connected(void)
{
    struct builder builder = builder_open(IBV_QPT_RC, OPS_RC);
    local_initialize(builder.qp);
    local_receive_from(builder.qp, builder.qp->qp_num);
    local_send(builder.qp);
    return builder;
}

void builder_close(struct builder *builder)
{
    EXPECT(ibv_close_device(builder->context), ==, 0);
    free(builder->memory);
}

void builder_post_receive(struct builder *builder, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)builder->memory + TARGET, length, builder->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = ID, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_recv(builder->qp, &wr, &bad), ==, 0);
}

struct ibv_qp_ex *builder_start(struct builder *builder)
{
    ibv_wr_start(builder->ex);
    builder->ex->wr_id = ID;
    builder->ex->wr_flags = IBV_SEND_SIGNALED;
    return builder->ex;
}

void builder_set_source(struct builder *builder, const char *text)
{
    strcpy(builder->memory, text);
    ibv_wr_set_sge(builder->ex, builder->mr->lkey, (uintptr_t)builder->memory, (uint32_t)strlen(text) + 1);
}

void builder_complete(struct builder *builder, enum ibv_wc_opcode opcode)
{
    EXPECT(ibv_wr_complete(builder->ex), ==, 0);
    struct ibv_wc wc = local_poll(builder->sent);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wr_id, ==, ID);
    EXPECT(wc.opcode, ==, opcode);
}

struct ibv_wc builder_expect_received(struct builder *builder, const char *text)
{
    struct ibv_wc wc = local_poll(builder->received);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(strcmp(builder->memory + TARGET, text), ==, 0);
    return wc;
}

uint64_t builder_target(const struct builder *builder)
{
    return (uintptr_t)builder->memory + TARGET;
}

uint64_t builder_word_at(const struct builder *builder, size_t offset)
{
    uint64_t word;
    memcpy(&word, builder->memory + offset, sizeof word);
    return word;
}
