#include "local_fixture.h"

#include <stdlib.h>

struct desk desk_open(void)
{
    struct desk desk = {.context = alone_open()};
    desk.pd = ibv_alloc_pd(desk.context);
    desk.cq = ibv_create_cq(desk.context, 16, NULL, NULL, 0);
    EXPECT_TRUE(desk.pd && desk.cq);
    desk.mr = alone_register(desk.pd);
    desk.memory = alone_memory(desk.mr);
    return desk;
}

void desk_close(struct desk *desk)
{
    EXPECT(ibv_close_device(desk->context), ==, 0);
    free(desk->memory);
}

struct ibv_qp_init_attr desk_describe(const struct desk *desk, enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){.send_cq = desk->cq,
                                     .recv_cq = desk->cq,
                                     .qp_type = type,
                                     .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
}

struct ibv_qp *desk_qp(const struct desk *desk, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = desk_describe(desk, type);
    struct ibv_qp *qp = ibv_create_qp(desk->pd, &init);
    EXPECT_TRUE(qp);
    return qp;
}

struct ibv_srq *desk_srq(struct desk *desk, uint32_t size)
{
    struct ibv_srq *srq = ibv_create_srq(desk->pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = size, .max_sge = 1}});
    EXPECT_TRUE(srq);
    return srq;
}

void desk_write(struct desk *desk, struct ibv_qp *qp, int count)
{
    struct ibv_sge sge = {(uintptr_t)desk->memory, 8, desk->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)desk->memory + 64, desk->mr->rkey}},
                       *bad;
    for (int i = 0; i < count; i++, wr.wr_id++)
        EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
}
