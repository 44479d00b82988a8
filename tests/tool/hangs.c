/* Programs that hang, each for one cause that `softverbs why` must name: hangs CAUSE. It prints its process's number
 * when it hangs. */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static union ibv_gid gid;
static char memory[4096];

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        exit(2);
    return qp;
}

static void connect_to(struct ibv_qp *qp, uint32_t number)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = number & 0xffffff,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
        ibv_modify_qp(qp, &rts,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC))
        exit(2);
}

static void send_from(struct ibv_qp *qp, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};
    if (ibv_post_send(qp, &wr, &bad))
        exit(2);
}

static void receive_at(struct ibv_qp *qp)
{
    struct ibv_sge sge = {(uintptr_t)memory + 64, 64, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    if (ibv_post_recv(qp, &wr, &bad))
        exit(2);
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    channel = pd ? ibv_create_comp_channel(context) : NULL;
    cq = channel ? ibv_create_cq(context, 16, NULL, channel, 0) : NULL;
    mr = cq ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!mr || ibv_query_gid(context, 1, 0, &gid))
        exit(2);
}

static void wait_for_completion(void)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(cq, 1, &wc))
        usleep(1000);
}

int main(int argc, char **argv)
{
    const char *cause = argc == 2 ? argv[1] : "";
    struct ibv_cq *out;
    void *user;
    open_device();
    struct ibv_qp *qp = make_qp(), *other = make_qp();
    bool self = !strcmp(cause, "unsignalled") || !strcmp(cause, "unarmed") || !strcmp(cause, "message") ||
                !strcmp(cause, "receives");
    if (self || !strcmp(cause, "init") || !strcmp(cause, "deaf"))
        connect_to(qp, self ? qp->qp_num : other->qp_num);
    if (self)
        ibv_destroy_qp(other);
    if (!strcmp(cause, "nobody"))
        connect_to(qp, qp->qp_num ^ 0x800000);
    if (!strcmp(cause, "unsignalled") || !strcmp(cause, "unarmed"))
        receive_at(qp);
    if (strcmp(cause, "message") && strcmp(cause, "init"))
        send_from(qp, strcmp(cause, "unsignalled") ? IBV_SEND_SIGNALED : 0);
    if (!strcmp(cause, "message"))
        receive_at(qp);
    if (!strcmp(cause, "unsignalled"))
        wait_for_completion(); /* the receive's */
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (!strcmp(cause, "unarmed"))
        return ibv_get_cq_event(channel, &out, &user);
    for (;;)
        pause();
}
