/* How a SEND to a queue pair that is its own peer ends, and after how many milliseconds: timed MODE.
 * silent: at timeout 20 and retry 7; unready: no receive is posted, rnr_retry is 6 and min_rnr_timer 0 (0.66 s). */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop.h"

enum { TIMEOUT = 20, RETRIES = 7, RNR_RETRIES = 6 };

static char memory[64];

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *have(void *object)
{
    if (!object)
        exit(2);
    return object;
}

int main(int argc, char **argv)
{
    struct ibv_device **devices = have(ibv_get_device_list(NULL));
    struct ibv_context *context = have(ibv_open_device(have(devices[0])));
    struct ibv_pd *pd = have(ibv_alloc_pd(context));
    struct ibv_cq *cq = have(ibv_create_cq(context, 4, NULL, NULL, 0));
    struct ibv_mr *mr = have(ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = have(ibv_create_qp(pd, &init));
    struct ibv_sge element = {.addr = (uintptr_t)memory, .length = sizeof memory, .lkey = mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &element, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {
        .wr_id = 2, .sg_list = &element, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad_send;
    struct ibv_wc wc = {0};
    loop_connect(qp, TIMEOUT, RETRIES, RNR_RETRIES);
    if (argc != 2 || (!strcmp(argv[1], "silent") && ibv_post_recv(qp, &receive, &bad_receive)))
        return 2;
    double began = milliseconds();
    if (ibv_post_send(qp, &send, &bad_send))
        return 2;
    while (wc.wr_id != send.wr_id)
        ibv_poll_cq(cq, 1, &wc);
    printf("%s after %.0f ms\n", ibv_wc_status_str(wc.status), milliseconds() - began);
    ibv_destroy_qp(qp);
    return 0;
}
