#include "local_fixture.h"

#include <stdlib.h>

struct fixture fixture_open(void)
{
    struct fixture fixture = {.context = local_open()};
    fixture.pd = ibv_alloc_pd(fixture.context);
    fixture.cq = ibv_create_cq(fixture.context, 16, NULL, NULL, 0);
    EXPECT_TRUE(fixture.pd && fixture.cq);
    fixture.mr = local_register(fixture.pd);
    fixture.memory = local_memory(fixture.mr);
    return fixture;
}

void fixture_close(struct fixture *fixture)
{
    EXPECT(ibv_close_device(fixture->context), ==, 0);
    free(fixture->memory);
}

struct ibv_qp_init_attr fixture_describe(const struct fixture *fixture, enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){.send_cq = fixture->cq,
                                     .recv_cq = fixture->cq,
                                     .qp_type = type,
                                     .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
}

struct ibv_qp *fixture_qp(const struct fixture *fixture, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = fixture_describe(fixture, type);
    struct ibv_qp *qp = ibv_create_qp(fixture->pd, &init);
    EXPECT_TRUE(qp);
    return qp;
}

struct ibv_srq *fixture_srq(struct fixture *fixture, uint32_t size)
{
    struct ibv_srq *srq =
        ibv_create_srq(fixture->pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = size, .max_sge = 1}});
    EXPECT_TRUE(srq);
    return srq;
}

void fixture_write(struct fixture *fixture, struct ibv_qp *qp, int count)
{
    struct ibv_sge sge = {(uintptr_t)fixture->memory, 8, fixture->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)fixture->memory + 64, fixture->mr->rkey}},
                       *bad;
    for (int i = 0; i < count; i++, wr.wr_id++)
        EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
}
