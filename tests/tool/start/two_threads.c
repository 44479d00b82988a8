/* A program of users for sanitizers_test.py, which compiles it with their options: one thread sends to another over RC,
 * both polling. Its argument is the mistake that it makes: overflow, race or leak; without one it makes no mistake. For
 * the checker: `early` reads a receive's buffer before the completion, `handover` has one thread post and another poll
 * and fill the buffer anew, `hasty` has that one not poll. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 500, SIZE = 4096, RECEIVES = 8 };

struct end {
    char *memory;
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static int racy; /* which both threads write */
static const char *mistake = "";

static void must(int fine, const char *what)
{
    if (!fine) {
        printf("%s fails\n", what);
        exit(1);
    }
}

static void make(struct end *end, struct ibv_pd *pd)
{
    end->memory = calloc(1, SIZE);
    end->mr = ibv_reg_mr(pd, end->memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
    end->cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    must(end->mr && end->cq, "ibv_reg_mr or ibv_create_cq");
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    must((end->qp = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
}

static void connect_to(struct end *end, const struct end *peer, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    must(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer->qp->qp_num,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 1,
                                .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}}};
    must(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    must(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
}

static void post_receive(struct end *end)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, SIZE, end->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    must(!ibv_post_recv(end->qp, &wr, &bad), "ibv_post_recv");
}

static void post_send(struct end *end)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, SIZE, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    must(!ibv_post_send(end->qp, &wr, &bad), "ibv_post_send");
}

static void await(struct end *end)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(end->cq, 1, &wc))
        ;
    must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

static void *receive(void *context)
{
    struct end *end = context;
    for (int i = 0; i < MESSAGES; i++) {
        await(end);
        racy += !strcmp(mistake, "race") + end->memory[0];
        post_receive(end);
    }
    return NULL;
}

static void *fill_anew(void *context)
{
    struct end *end = context;
    if (!strcmp(mistake, "hasty"))
        usleep(200000); /* the mistake: time instead of a completion */
    else
        await(end);
    end->memory[1] = 2;
    return NULL;
}

static void hand_over(struct end *end)
{
    pthread_t other;
    pthread_create(&other, NULL, fill_anew, end);
    end->memory[1] = 1;
    post_send(end);
    pthread_join(other, NULL);
}

static void destroy(struct end *end)
{
    ibv_destroy_qp(end->qp);
    ibv_destroy_cq(end->cq);
    ibv_dereg_mr(end->mr);
    free(end->memory);
}

int main(int argc, char **argv)
{
    struct end ends[2];
    pthread_t receiver;
    union ibv_gid gid;
    mistake = argc > 1 ? argv[1] : "";
    struct ibv_device **devices = ibv_get_device_list(NULL);
    must(devices && devices[0], "ibv_get_device_list");
    struct ibv_context *context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    must(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
    make(&ends[0], pd);
    make(&ends[1], pd);
    connect_to(&ends[0], &ends[1], &gid);
    connect_to(&ends[1], &ends[0], &gid);
    for (int i = 0; i < RECEIVES; i++)
        post_receive(&ends[1]);
    if (!strcmp(mistake, "early"))
        racy += ends[1].memory[SIZE / 2];
    if (!strcmp(mistake, "handover") || !strcmp(mistake, "hasty")) {
        hand_over(&ends[0]);
        return 0;
    }
    pthread_create(&receiver, NULL, receive, &ends[1]);
    for (int i = 0; i < MESSAGES; i++) {
        if (!strcmp(mistake, "race"))
            racy++;
        post_send(&ends[0]);
        await(&ends[0]);
    }
    pthread_join(receiver, NULL);
    if (!strcmp(mistake, "overflow"))
        ends[0].memory[SIZE + (argc > 2)] = 1;
    if (!strcmp(mistake, "leak"))
        ibv_get_device_list(NULL); /* memory that our library takes, and its caller loses */
    destroy(&ends[0]);
    destroy(&ends[1]);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    return 0;
}
