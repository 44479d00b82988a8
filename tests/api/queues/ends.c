#include "ends.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/patience.h"
#include "one_process.h"

#define SILENCE 0.02 /* seconds */

struct ends ends;

struct ibv_cq *ends_make_cq(int entries, uint64_t flags, uint16_t size)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)entries, .channel = ends.channel};
    struct mlx5dv_cq_init_attr mlx5 = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = size};
    if (flags) {
        attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
        attr.flags = (uint32_t)flags;
    }
    struct ibv_cq_ex *cq = mlx5dv_create_cq(ends.context, &attr, &mlx5);
    EXPECT_TRUE(cq);
    return ibv_cq_ex_to_cq(cq);
}

struct ibv_qp *ends_make_qp(enum ibv_qp_type type, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ends.sent.cq,
        .recv_cq = ends.received.cq,
        .srq = srq,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 2, .max_recv_sge = 2},
        .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(ends.pd, &attr);
    EXPECT_TRUE(qp);
    return qp;
}

/* Connects the queue pair with itself. */
void ends_connect_itself(struct ibv_qp *qp)
{
    local_initialize(qp);
    local_receive_from(qp, qp->qp_num);
    local_send(qp);
}

void ends_open_queues(uint16_t entry_size)
{
    ends = (struct ends){.context = local_open(), .memory = calloc(1, BYTES)};
    ends.pd = ibv_alloc_pd(ends.context);
    ends.channel = ibv_create_comp_channel(ends.context);
    ends.mr = ibv_reg_mr(ends.pd, ends.memory, BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    EXPECT_TRUE(ends.memory && ends.channel && ends.mr);
    entries_open(&ends.sent, ends_make_cq(100, 0, entry_size));
    entries_open(&ends.received, ends_make_cq(100, 0, entry_size));
}

void ends_open_connection(void)
{
    ends_open_queues(64);
    struct ibv_qp *near = ends_make_qp(IBV_QPT_RC, NULL), *far = ends_make_qp(IBV_QPT_RC, NULL);
    local_connect(near, far);
    driver_open(&ends.near, near);
    driver_open(&ends.far, far);
}

void ends_close(void)
{
    EXPECT(ibv_close_device(ends.context), ==, 0);
    free(ends.memory);
}

uint64_t ends_far_memory(void)
{
    return (uint64_t)(uintptr_t)ends.memory + FAR;
}

void ends_receive(void)
{
    driver_receive(&ends.far, ends.memory + FAR, 4096, ends.mr->lkey);
}

struct entry ends_expect_entry(struct entries *entries, uint8_t opcode, uint16_t counter)
{
    struct entry entry = entries_next(entries);
    EXPECT(entry.opcode, ==, opcode);
    EXPECT(entry.counter, ==, counter);
    return entry;
}

void ends_expect_nothing(struct entries *entries)
{
    for (double end = patience_now() + SILENCE; patience_now() < end;)
        EXPECT(entries_look(entries).opcode, ==, ENTRY_MISSING);
}

uint16_t ends_send_inline(uint8_t operation, const char *text)
{
    driver_begin(&ends.near, operation, SIGNALLED, htonl(77));
    driver_inline(&ends.near, text, (uint32_t)strlen(text));
    uint16_t index = driver_end(&ends.near);
    driver_ring(&ends.near);
    return index;
}
