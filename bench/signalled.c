/* Signalled SENDs of eight bytes inline between two queue pairs of this process, of RC or of SRD: `signalled rc` on any
 * device, `signalled srd` on one of a profile of EFA. A step posts one, and polls until it has its receive and its
 * completion; callgrind counts the function `count_steps`. Prints the microseconds of a step. */
#include <infiniband/efadv.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "endpoint.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum { BATCHES = 32, DEPTH = 64, WARM_UP = 2000, QKEY = 0x11111111 };

static char memory[64];
static struct endpoint end;
static struct ibv_qp *sender, *receiver;
static struct ibv_mr *mr;
static struct ibv_send_wr wr;
static struct ibv_sge sge;

static struct ibv_qp *make_srd(void)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = end.cq,
                                       .recv_cq = end.cq,
                                       .qp_type = IBV_QPT_DRIVER,
                                       .cap = {DEPTH, DEPTH, 1, 1, 32},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = end.pd};
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .rnr_retry = 7};
    struct ibv_qp *qp = efadv_create_qp_ex(end.context, &init, &efa, sizeof efa);
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        die("no queue pair of SRD");
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        die("not to RTR");
    attr.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
        die("not to RTS");
    return qp;
}

static void open_srd(void)
{
    struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
    sender = make_srd();
    receiver = make_srd();
    if (ibv_query_gid(end.context, 1, 0, &to.grh.dgid) || !(wr.wr.ud.ah = ibv_create_ah(end.pd, &to)))
        die("no address handle");
    wr.wr.ud.remote_qpn = receiver->qp_num;
    wr.wr.ud.remote_qkey = QKEY;
}

static void open_rc(void)
{
    sender = endpoint_create_qp(&end, IBV_QPT_RC, DEPTH, DEPTH);
    receiver = endpoint_create_qp(&end, IBV_QPT_RC, DEPTH, DEPTH);
    struct address from = endpoint_address(&end, sender, mr), to = endpoint_address(&end, receiver, mr);
    endpoint_connect(sender, &to, 14);
    endpoint_connect(receiver, &from, 14);
}

static void post_receive(void)
{
    struct ibv_sge into = {(uintptr_t)memory, sizeof memory, mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &into, .num_sge = 1};
    if (ibv_post_recv(receiver, &receive, &bad))
        die("a receive is refused");
}

static inline void step(void)
{
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    if (ibv_post_send(sender, &wr, &bad))
        die("a send is refused");
    for (int found = 0; found < 2;) {
        int count = ibv_poll_cq(end.cq, 1, &wc);
        if (count < 0 || (count && wc.status))
            die("a message ends in %s", ibv_wc_status_str(wc.status));
        found += count;
    }
}

__attribute__((noinline)) static void count_steps(void)
{
    for (int i = 0; i < DEPTH; i++)
        step();
}

/* This thread polls first, so that the helper thread does nothing meanwhile. */
static double run_batch(void)
{
    struct timespec begin, done;
    struct ibv_wc wc;
    for (int i = 0; i < DEPTH; i++)
        post_receive();
    for (int i = 0; i < WARM_UP; i++)
        ibv_poll_cq(end.cq, 1, &wc);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    count_steps();
    clock_gettime(CLOCK_MONOTONIC, &done);
    return ((double)(done.tv_sec - begin.tv_sec) * 1e9 + (double)(done.tv_nsec - begin.tv_nsec)) / DEPTH / 1000;
}

int main(int count, char **arguments)
{
    double least = 1e9;
    endpoint_open(&end, 4 * DEPTH);
    mr = ibv_reg_mr(end.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    if (!mr)
        die("no memory region");
    sge = (struct ibv_sge){.addr = (uintptr_t)memory, .length = 8};
    wr = (struct ibv_send_wr){
        .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
    if (count > 1 && !strcmp(arguments[1], "srd"))
        open_srd();
    else
        open_rc();
    for (int i = 0; i < BATCHES; i++) {
        double took = run_batch();
        least = took < least ? took : least;
    }
    printf("%.3f\n", least);
    return 0;
}
