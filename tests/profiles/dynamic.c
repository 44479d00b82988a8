/* Work of a dynamically connected queue pair that ends in an error or waits: `dynamic WORD [SECONDS]`. Run by
 * mlx5_test.py, which looks at the log and at softverbs why. Prints the status of the work, or -1 after the seconds. */
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/mlx5.def"

enum { KEY = 0x1ee7, BYTES = 64, ID = 77, FAR = 999 };

static struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *received;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    struct ibv_qp *target, *initiator;
    char memory[BYTES];
} ends;

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "dynamic: %s\n", what);
        exit(2);
    }
}

static void open_device(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    ends.context = ibv_open_device(ibv_get_device_list(NULL)[0]);
    must(ends.context, "ibv_open_device");
    ends.pd = ibv_alloc_pd(ends.context);
    ends.sent = ibv_create_cq(ends.context, 8, NULL, NULL, 0);
    ends.received = ibv_create_cq(ends.context, 8, NULL, NULL, 0);
    ends.srq = ibv_create_srq(ends.pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 8, .max_sge = 1}});
    ends.mr = ibv_reg_mr(ends.pd, ends.memory, sizeof ends.memory, IBV_ACCESS_LOCAL_WRITE);
    must(!ibv_query_gid(ends.context, 1, 0, &attr.grh.dgid), "ibv_query_gid");
    ends.ah = ibv_create_ah(ends.pd, &attr);
    must(ends.sent && ends.received && ends.srq && ends.mr && ends.ah, "objects");
}

static struct ibv_qp *create(struct mlx5dv_dc_init_attr dc, struct ibv_srq *srq, uint64_t builders)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = ends.sent,
                                       .recv_cq = ends.received,
                                       .srq = srq,
                                       .cap = {.max_send_wr = 8, .max_send_sge = 1},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = ends.pd,
                                       .send_ops_flags = builders};
    struct mlx5dv_qp_init_attr more = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC, .dc_init_attr = dc};
    if (builders)
        attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct ibv_qp *qp = mlx5dv_create_qp(ends.context, &attr, &more);
    must(qp, "mlx5dv_create_qp");
    return qp;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), "ibv_modify_qp");
}

static void open_target(void)
{
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr to_rtr = {.qp_state = IBV_QPS_RTR,
                                 .path_mtu = IBV_MTU_1024,
                                 .min_rnr_timer = 12,
                                 .ah_attr = {.is_global = 1, .port_num = 1}};
    modify(ends.target, to_init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    modify(ends.target, to_rtr, IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU);
}

static void make_target(void)
{
    ends.target = create((struct mlx5dv_dc_init_attr){MLX5DV_DCTYPE_DCT, {KEY}}, ends.srq, 0);
    open_target();
}

static void make_initiator(uint8_t timeout, uint8_t retries)
{
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr to_rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    struct ibv_qp_attr to_rts = {
        .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = retries, .rnr_retry = 7, .max_rd_atomic = 1};
    ends.initiator = create((struct mlx5dv_dc_init_attr){.dc_type = MLX5DV_DCTYPE_DCI}, NULL, IBV_QP_EX_WITH_SEND);
    modify(ends.initiator, to_init, IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    modify(ends.initiator, to_rtr, IBV_QP_PATH_MTU);
    modify(ends.initiator, to_rts,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN);
}

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)ends.memory, BYTES, ends.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    must(!ibv_post_srq_recv(ends.srq, &wr, &bad), "ibv_post_srq_recv");
}

static void send_to(uint32_t number, uint64_t key)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ends.initiator);
    struct mlx5dv_qp_ex *more = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    ibv_wr_start(ex);
    ex->wr_id = ID;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    more->wr_set_dc_addr(more, ends.ah, number, key);
    ibv_wr_set_sge(ex, ends.mr->lkey, (uintptr_t)ends.memory, BYTES);
    must(!ibv_wr_complete(ex), "ibv_wr_complete");
}

static int await_status(int seconds)
{
    struct ibv_wc wc;
    time_t until = time(NULL) + seconds;
    int count = 0;
    while (!count && time(NULL) < until) {
        count = ibv_poll_cq(ends.sent, 1, &wc);
        usleep(1000);
    }
    return count == 1 ? (int)wc.status : -1;
}

static void reset_target(void)
{
    modify(ends.target, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
}

/* The initiator has a responder, which the target has forgotten. */
static void renew_target(void)
{
    post_receive();
    send_to(ends.target->qp_num, KEY);
    must(!await_status(60), "a message arrives");
    reset_target();
    open_target();
}

int main(int count, char **words)
{
    const char *word = count > 1 ? words[1] : "";
    bool waits = count > 2;
    open_device();
    make_target();
    make_initiator(waits ? 20 : 10, waits ? 7 : 1);
    if (!strcmp(word, "fine"))
        post_receive();
    if (!strcmp(word, "reset"))
        reset_target();
    if (!strcmp(word, "renewed"))
        renew_target();
    send_to(ends.target->qp_num + (!strcmp(word, "nobody") ? FAR : 0), KEY + !strcmp(word, "key"));
    printf("%d\n", await_status(waits ? atoi(words[2]) : 60));
    return 0;
}
