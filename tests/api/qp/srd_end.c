#include "srd_end.h"

#include <stdlib.h>
#include <string.h>

struct ibv_context *srd_device(void)
{
    return local_open();
}

struct ibv_qp *srd_make_qp(struct ibv_context *context, struct ibv_pd *pd, struct ibv_cq *cq, uint64_t operations,
                           struct srd_wishes wishes)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .qp_type = IBV_QPT_DRIVER,
                                       .cap = {wishes.sends, wishes.receives, 2, 1, SRD_INLINE},
                                       .pd = pd,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = operations};
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD, .flags = wishes.flags};
    return efadv_create_qp_ex(context, &attr, &efa, sizeof efa);
}

void srd_to_rts(struct ibv_qp *qp, uint32_t rnr_retry)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = SRD_QKEY, .rnr_retry = (uint8_t)rnr_retry};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), ==, 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ==, 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY), ==, 0);
}

struct srd_end srd_open_on(struct ibv_context *context, struct srd_wishes wishes)
{
    struct srd_end end = {.context = context, .memory = calloc(1, SRD_BYTES)};
    end.pd = ibv_alloc_pd(context);
    end.cq = ibv_create_cq(context, 512, NULL, NULL, 0);
    EXPECT_TRUE(end.memory && end.pd && end.cq);
    end.mr = ibv_reg_mr(end.pd, end.memory, SRD_BYTES,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    end.qp = srd_make_qp(context, end.pd, end.cq, SRD_ALL_OPS, wishes);
    EXPECT_TRUE(end.mr && end.qp);
    end.ex = ibv_qp_to_qp_ex(end.qp);
    EXPECT(ibv_query_gid(context, 1, 0, &end.gid), ==, 0);
    srd_to_rts(end.qp, wishes.rnr_retry);
    return end;
}

struct srd_end srd_open(struct ibv_context *context)
{
    return srd_open_on(context, (struct srd_wishes){SRD_SENDS, SRD_RECEIVES, SRD_FOR_EVER, 0});
}

void srd_close(struct srd_end *end)
{
    if (end->qp)
        EXPECT(ibv_destroy_qp(end->qp), ==, 0);
    EXPECT(ibv_dereg_mr(end->mr), ==, 0);
    EXPECT(ibv_destroy_cq(end->cq), ==, 0);
    EXPECT(ibv_dealloc_pd(end->pd), ==, 0);
    free(end->memory);
}

struct ibv_ah *srd_handle(const struct srd_end *end)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = end->gid}};
    struct ibv_ah *ah = ibv_create_ah(end->pd, &attr);
    EXPECT_TRUE(ah);
    return ah;
}

int srd_number(struct ibv_ah *ah)
{
    struct efadv_ah_attr attr;
    EXPECT(efadv_query_ah(ah, &attr, sizeof attr), ==, 0);
    return attr.ahn;
}

struct srd_wr srd_wr(const struct srd_end *near, const struct srd_end *far, struct ibv_ah *ah,
                     enum ibv_wr_opcode opcode, uint32_t length)
{
    return (struct srd_wr){.opcode = opcode,
                           .ah = ah,
                           .qpn = far->qp->qp_num,
                           .qkey = SRD_QKEY,
                           .rkey = far->mr->rkey,
                           .immediate = 0x01020304,
                           .id = 7,
                           .remote = (uintptr_t)far->memory + SRD_BYTES / 2,
                           .from = near->memory,
                           .length = length,
                           .lkey = near->mr->lkey};
}

static void build_opcode(struct ibv_qp_ex *ex, const struct srd_wr *work)
{
    switch (work->opcode) {
    case IBV_WR_SEND:
        return ibv_wr_send(ex);
    case IBV_WR_SEND_WITH_IMM:
        return ibv_wr_send_imm(ex, work->immediate);
    case IBV_WR_RDMA_READ:
        return ibv_wr_rdma_read(ex, work->rkey, work->remote);
    case IBV_WR_RDMA_WRITE:
        return ibv_wr_rdma_write(ex, work->rkey, work->remote);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return ibv_wr_rdma_write_imm(ex, work->rkey, work->remote, work->immediate);
    default:
        harness_fail(__FILE__, __LINE__, "no builder of opcode %d", work->opcode);
    }
}

void srd_build(struct srd_end *end, const struct srd_wr *work)
{
    end->ex->wr_id = work->id;
    end->ex->wr_flags = work->flags ? work->flags & ~(unsigned)IBV_SEND_INLINE : IBV_SEND_SIGNALED;
    build_opcode(end->ex, work);
    if (work->flags & IBV_SEND_INLINE)
        ibv_wr_set_inline_data(end->ex, (void *)(uintptr_t)work->from, work->length);
    else
        ibv_wr_set_sge(end->ex, work->lkey, (uintptr_t)work->from, work->length);
    if (work->ah)
        ibv_wr_set_ud_addr(end->ex, work->ah, work->qpn, work->qkey);
}

int srd_try(struct srd_end *end, const struct srd_wr *work)
{
    ibv_wr_start(end->ex);
    srd_build(end, work);
    return ibv_wr_complete(end->ex);
}

void srd_post(struct srd_end *end, struct srd_wr work)
{
    EXPECT(srd_try(end, &work), ==, 0);
}

void srd_post_receive(struct srd_end *end, uint64_t id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)end->memory + offset, length, end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_recv(end->qp, &wr, &bad), ==, 0);
}

struct ibv_wc srd_expect(struct srd_end *end, uint64_t id, enum ibv_wc_status status, uint32_t vendor)
{
    struct ibv_wc wc = local_poll(end->cq);
    EXPECT(wc.status, ==, status);
    EXPECT(wc.vendor_err, ==, vendor);
    EXPECT(wc.wr_id, ==, id);
    EXPECT(wc.qp_num, ==, end->qp->qp_num);
    return wc;
}

static unsigned char pattern(uint32_t at, unsigned seed)
{
    return (unsigned char)(at * 7 + at / 251 + seed);
}

void srd_fill(unsigned char *memory, uint32_t length, unsigned seed)
{
    for (uint32_t i = 0; i < length; i++)
        memory[i] = pattern(i, seed);
}

bool srd_is_filled(const unsigned char *memory, uint32_t length, unsigned seed)
{
    uint32_t i = 0;
    while (i < length && memory[i] == pattern(i, seed))
        i++;
    return i == length;
}
