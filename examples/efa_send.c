/* Sends four messages over a queue pair of EFA to itself, and prints how each send and each receive ends. An argument
 * is the Q_Key to send with, instead of the queue pair's own. The page docs/tutorial/efa.md goes with it.
 *
 *     cc -Wall -o efa_send efa_send.c -lefa -libverbs
 *     softverbs run --profile efa -- ./efa_send */
#include <infiniband/efadv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 4, SIZE = 32, QKEY = 0x1234 };
static char out[MESSAGES][SIZE], in[MESSAGES][SIZE];

static void must(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_DRIVER,
        .sq_sig_all = 1, /* each one must signal its end */
        .cap = {.max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1},
        .pd = pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_qp *qp = efadv_create_qp_ex(pd->context, &init, &efa, sizeof efa);
    must(qp != NULL, "efadv_create_qp_ex");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .rnr_retry = 7};
    must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "to INIT");
    attr.qp_state = IBV_QPS_RTR;
    must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY), "to RTS");
    return qp;
}

static int print_ends(struct ibv_cq *cq, int sends, int receives)
{
    int failed = 0;
    while (sends || (receives && !failed)) {
        struct ibv_wc wc;
        if (!ibv_poll_cq(cq, 1, &wc))
            continue;
        int receive = wc.wr_id >= MESSAGES;
        printf("%s %d: %s, vendor_err %u\n", receive ? "receive" : "send", (int)wc.wr_id % MESSAGES,
               receive ? in[wc.wr_id % MESSAGES] : ibv_wc_status_str(wc.status), wc.vendor_err);
        failed |= wc.status != IBV_WC_SUCCESS;
        *(receive ? &receives : &sends) -= 1;
    }
    return failed;
}

int main(int count, char **arguments)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    must(list && *list, "ibv_get_device_list");
    struct ibv_context *context = ibv_open_device(*list);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 2 * MESSAGES, NULL, NULL, 0);
    struct ibv_qp *qp = make_qp(pd, cq);
    union ibv_gid gid;
    must(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
    struct ibv_ah *ah = ibv_create_ah(pd, &(struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh.dgid = gid});
    struct ibv_mr *from = ibv_reg_mr(pd, out, sizeof out, 0),
                  *to = ibv_reg_mr(pd, in, sizeof in, IBV_ACCESS_LOCAL_WRITE);
    must(ah && from && to, "an address handle and two regions");
    for (int i = 0; i < MESSAGES; i++) {
        struct ibv_sge sge = {(uintptr_t)in[i], SIZE, to->lkey};
        struct ibv_recv_wr receive = {.wr_id = MESSAGES + i, .sg_list = &sge, .num_sge = 1}, *bad;
        must(!ibv_post_recv(qp, &receive, &bad), "ibv_post_recv");
        snprintf(out[i], SIZE, "message %d", i);
    }
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
    for (int i = 0; i < MESSAGES; i++) {
        ibv_wr_start(qpx);
        qpx->wr_id = i;
        ibv_wr_send(qpx);
        ibv_wr_set_sge(qpx, from->lkey, (uintptr_t)out[i], SIZE);
        ibv_wr_set_ud_addr(qpx, ah, qp->qp_num, count > 1 ? strtoul(arguments[1], NULL, 0) : QKEY);
        must(!ibv_wr_complete(qpx), "ibv_wr_complete");
    }
    return print_ends(cq, MESSAGES, MESSAGES);
}
