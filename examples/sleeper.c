/* One thread sends numbers to itself, another sleeps until their completions come. It makes a mistake, which
 * docs/tutorial/sim.md finds.
 *
 *     cc -Wall -o sleeper sleeper.c -libverbs -pthread
 *     softverbs run -- ./sleeper */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 20 };

static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* --- the thread that sleeps */

static int poll_one(void)
{
    struct ibv_wc wc;
    int found = ibv_poll_cq(cq, 1, &wc);
    must(found >= 0, "ibv_poll_cq");
    must(!found || wc.status == IBV_WC_SUCCESS, "a completion");
    return found;
}

static void sleep_until_event(void)
{
    struct ibv_cq *of;
    void *context;
    must(!ibv_get_cq_event(channel, &of, &context), "ibv_get_cq_event");
    ibv_ack_cq_events(of, 1);
}

static void *await_all(void *unused)
{
    for (int done = 0; done < 2 * MESSAGES;) {
        if (poll_one()) {
            done++;
            continue;
        }
        must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
        sleep_until_event();
    }
    return unused;
}

/* --- the thread that sends */

static void connect_to_itself(struct ibv_qp *qp, struct ibv_context *device)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qp->qp_num,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 12,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    must(!ibv_query_gid(device, 1, 0, &attr.ah_attr.grh.dgid), "ibv_query_gid");
    must(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    must(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "to RTS");
}

static void send_number(struct ibv_qp *qp, const struct ibv_mr *mr)
{
    int *numbers = mr->addr;
    struct ibv_sge from = {(uintptr_t)&numbers[0], sizeof *numbers, mr->lkey};
    struct ibv_sge to = {(uintptr_t)&numbers[1], sizeof *numbers, mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad_send;
    must(!ibv_post_recv(qp, &receive, &bad_receive), "ibv_post_recv");
    must(!ibv_post_send(qp, &send, &bad_send), "ibv_post_send");
}

int main(void)
{
    static int numbers[2];
    pthread_t sleeper;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    must(devices && *devices, "ibv_get_device_list");
    struct ibv_context *device = ibv_open_device(*devices);
    must(device != NULL, "ibv_open_device");
    struct ibv_pd *pd = ibv_alloc_pd(device);
    channel = ibv_create_comp_channel(device);
    cq = ibv_create_cq(device, 2 * MESSAGES, NULL, channel, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {MESSAGES, MESSAGES, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_mr *mr = ibv_reg_mr(pd, numbers, sizeof numbers, IBV_ACCESS_LOCAL_WRITE);
    must(qp && mr, "a queue pair and a memory region");
    connect_to_itself(qp, device);
    pthread_create(&sleeper, NULL, await_all, NULL);
    for (int i = 0; i < MESSAGES; i++)
        send_number(qp, mr);
    pthread_join(sleeper, NULL);
    puts("all have arrived");
    return 0;
}
