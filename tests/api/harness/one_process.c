#include "one_process.h"
#include "base/testing/patience.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum { SILENCE = 20, MEMORY = 4096 };

struct ibv_context *local_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT_TRUE(list && list[0]);
    struct ibv_context *context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    EXPECT_TRUE(context);
    return context;
}

struct ibv_mr *local_register(struct ibv_pd *pd)
{
    void *memory = aligned_alloc(MEMORY, MEMORY);
    EXPECT_TRUE(memory);
    for (int i = 0; i < MEMORY; i++)
        ((char *)memory)[i] = 0;
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, MEMORY,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_ATOMIC);
    EXPECT_TRUE(mr);
    return mr;
}

char *local_memory(struct ibv_mr *mr)
{
    return mr->addr;
}

void local_initialize(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = 0x11,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    int rest = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | rest), ==, 0);
}

void local_receive_from(struct ibv_qp *qp, uint32_t number)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = number,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1},
    };
    int mask = IBV_QP_STATE;
    EXPECT(ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid), ==, 0);
    if (qp->qp_type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_UC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    EXPECT(ibv_modify_qp(qp, &attr, mask), ==, 0);
}

void local_send(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 2, .rnr_retry = 7, .max_rd_atomic = 4};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_UC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    EXPECT(ibv_modify_qp(qp, &attr, mask), ==, 0);
}

void local_connect(struct ibv_qp *one, struct ibv_qp *other)
{
    local_initialize(one);
    local_initialize(other);
    local_receive_from(one, other->qp_num);
    local_receive_from(other, one->qp_num);
    local_send(one);
    local_send(other);
}

struct ibv_qp *local_loop(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    EXPECT_TRUE(qp);
    local_initialize(qp);
    local_receive_from(qp, qp->qp_num);
    local_send(qp);
    return qp;
}

enum ibv_qp_state local_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), ==, 0);
    return attr.qp_state;
}

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int poll_for(struct ibv_cq *cq, struct ibv_wc *wc, long wait)
{
    int got = 0;
    for (long until = milliseconds() + wait; !got && milliseconds() < until;)
        got = ibv_poll_cq(cq, 1, wc);
    return got;
}

struct ibv_wc local_poll(struct ibv_cq *cq)
{
    struct ibv_wc wc = {0};
    EXPECT(poll_for(cq, &wc, PATIENCE), ==, 1);
    return wc;
}

void local_poll_nothing(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    EXPECT(poll_for(cq, &wc, SILENCE), ==, 0);
}

struct ibv_async_event local_event(struct ibv_context *context)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    EXPECT(poll(&fd, 1, PATIENCE), ==, 1);
    EXPECT(ibv_get_async_event(context, &event), ==, 0);
    ibv_ack_async_event(&event);
    return event;
}

void local_no_event(struct ibv_context *context)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
    EXPECT(poll(&fd, 1, SILENCE), ==, 0);
}
