/* Both ends of a reliable connection in one process, which sends messages to itself and looks at each: a test that ends
 * by itself, with status 1 when something is wrong.
 *
 *     softverbs run -- ./both_ends
 *
 * docs/tutorial/adverse.md makes a mistake in it. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20, SIZE = 64 };

static char outgoing[SIZE], incoming[SIZE];
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *outgoing_mr, *incoming_mr;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *from, *to;

static void check(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr init = {.send_cq = send_cq,
                                    .recv_cq = recv_cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    check(qp != NULL, "ibv_create_qp");
    return qp;
}

static void create(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    check(list && *list, "ibv_get_device_list");
    check((context = ibv_open_device(*list)) != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    check((pd = ibv_alloc_pd(context)) != NULL, "ibv_alloc_pd");
    check((outgoing_mr = ibv_reg_mr(pd, outgoing, SIZE, 0)) != NULL, "ibv_reg_mr");
    check((incoming_mr = ibv_reg_mr(pd, incoming, SIZE, IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
    check((send_cq = ibv_create_cq(context, 1, NULL, NULL, 0)) != NULL, "ibv_create_cq");
    check((recv_cq = ibv_create_cq(context, 1, NULL, NULL, 0)) != NULL, "ibv_create_cq");
    from = make_qp();
    to = make_qp();
}

/* The index of the first GID of the port is not 0 everywhere. */
static uint8_t find_gid(union ibv_gid *gid)
{
    static const union ibv_gid none;
    uint8_t index = 0;
    for (;; index++) {
        check(!ibv_query_gid(context, 1, index, gid), "ibv_query_gid");
        if (memcmp(gid, &none, sizeof none))
            return index;
    }
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer->qp_num,
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    rtr.ah_attr.grh.sgid_index = find_gid(&rtr.ah_attr.grh.dgid);
    check(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
    check(!ibv_modify_qp(qp, &rtr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "to RTR");
    check(!ibv_modify_qp(qp, &rts,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC),
          "to RTS");
}

static void wait_for(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(cq, 1, &wc)))
        ;
    check(count > 0, "ibv_poll_cq");
    if (wc.status) {
        fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
        exit(1);
    }
}

static void receive(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)incoming, .length = SIZE, .lkey = incoming_mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    check(!ibv_post_recv(to, &wr, &bad), "ibv_post_recv");
}

static void send_text(const char *text)
{
    struct ibv_sge sge = {.addr = (uintptr_t)outgoing, .length = SIZE, .lkey = outgoing_mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    strcpy(outgoing, text);
    check(!ibv_post_send(from, &wr, &bad), "ibv_post_send");
    wait_for(send_cq);
    memset(outgoing, 0, SIZE); /* the device has read it */
}

int main(void)
{
    create();
    connect_to(from, to);
    connect_to(to, from);
    for (int round = 1; round <= ROUNDS; round++) {
        char text[SIZE];
        snprintf(text, sizeof text, "message %d", round);
        receive();
        send_text(text);
        wait_for(recv_cq);
        if (strcmp(incoming, text)) {
            printf("\"%s\" was sent and \"%s\" received\n", text, incoming);
            return 1;
        }
    }
    printf("%d messages were received\n", ROUNDS);
    check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "ibv_destroy_qp");
    check(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "ibv_destroy_cq");
    check(!ibv_dereg_mr(outgoing_mr) && !ibv_dereg_mr(incoming_mr) && !ibv_dealloc_pd(pd), "ibv_dereg_mr");
    check(!ibv_close_device(context), "ibv_close_device");
    return 0;
}
