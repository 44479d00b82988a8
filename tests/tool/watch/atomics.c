/* Atomics, a READ and a WRITE between a queue pair and itself, on words that do not begin at 0. Prints what each found.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOUND = 5, ADDED = 4, SWAPPED = 77, OTHER = 8 };

static uint64_t words[16] = {FOUND};
static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;

static void check(int wrong)
{
    if (wrong)
        exit(2);
}

static void make_queue_pair(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    cq = pd ? ibv_create_cq(context, 8, NULL, NULL, 0) : NULL;
    mr = cq ? ibv_reg_mr(pd, words, sizeof words,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_ATOMIC)
            : NULL;
    check(!mr);
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    qp = ibv_create_qp(pd, &init);
    check(!qp);
}

static void connect_it_with_itself(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .path_mtu = IBV_MTU_1024,
                               .max_rd_atomic = 4,
                               .max_dest_rd_atomic = 4,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .dest_qp_num = qp->qp_num,
                               .ah_attr = {.is_global = 1, .port_num = 1},
                               .qp_access_flags =
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
    check(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid));
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC));
}

/* The target is words[0], the local memory words[OTHER]. */
static void run(enum ibv_wr_opcode opcode, uint64_t compare_add)
{
    struct ibv_sge piece = {(uintptr_t)&words[OTHER], 8, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_wc wc;
    if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE) {
        wr.wr.rdma.remote_addr = (uintptr_t)words;
        wr.wr.rdma.rkey = mr->rkey;
    } else {
        wr.wr.atomic.remote_addr = (uintptr_t)words;
        wr.wr.atomic.compare_add = compare_add;
        wr.wr.atomic.swap = SWAPPED;
        wr.wr.atomic.rkey = mr->rkey;
    }
    check(ibv_post_send(qp, &wr, &bad));
    int count;
    do
        count = ibv_poll_cq(cq, 1, &wc);
    while (!count); /* the test ends a program that hangs */
    check(count < 0);
    printf("%d %d\n", wc.status, (int)words[OTHER]);
}

int main(void)
{
    make_queue_pair();
    connect_it_with_itself();
    run(IBV_WR_ATOMIC_FETCH_AND_ADD, ADDED);
    run(IBV_WR_ATOMIC_CMP_AND_SWP, FOUND + ADDED);
    run(IBV_WR_ATOMIC_CMP_AND_SWP, FOUND);
    run(IBV_WR_RDMA_READ, 0);
    run(IBV_WR_RDMA_WRITE, 0);
    return 0;
}
