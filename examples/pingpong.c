/* A first program of verbs: two processes send a message to and fro over a reliable connection.
 *
 *     softverbs run -- ./pingpong                 waits for the other end
 *     softverbs run -- ./pingpong 127.0.0.1       begins
 *
 * docs/tutorial/first-program.md explains it step by step. */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PORT = 18515, ROUNDS = 3, SIZE = 64 };

static char outgoing[SIZE], incoming[SIZE];
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *outgoing_mr, *incoming_mr;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qp;

/* What one end has to know of the other, in network byte order. */
struct address {
    uint32_t qp_num;
    union ibv_gid gid;
};

static void check(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

/* Step 1: the device and the objects of this end. */
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
    struct ibv_qp_init_attr init = {.send_cq = send_cq,
                                    .recv_cq = recv_cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    check((qp = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
}

/* Step 2: the queue pair may take receives. */
static void init(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    check(!ibv_modify_qp(qp, &attr, mask), "ibv_modify_qp to INIT");
}

/* Step 3: room for one message. */
static void post_receive(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)incoming, .length = SIZE, .lkey = incoming_mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Step 4: the two ends exchange their addresses over TCP. */
static struct address exchange(const char *host)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct address ours = {.qp_num = htonl(qp->qp_num)}, theirs;
    int tcp = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    check(!ibv_query_gid(context, 1, 0, &ours.gid), "ibv_query_gid");
    if (host) {
        check(inet_pton(AF_INET, host, &name.sin_addr) == 1, "inet_pton");
        check(!connect(tcp, (struct sockaddr *)&name, sizeof name), "connect");
    } else {
        setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        check(!bind(tcp, (struct sockaddr *)&name, sizeof name) && !listen(tcp, 1), "bind");
        printf("waiting at port %d\n", PORT);
        check((tcp = accept(tcp, NULL, NULL)) >= 0, "accept");
    }
    check(write(tcp, &ours, sizeof ours) == sizeof ours, "write");
    check(recv(tcp, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs, "recv");
    printf("queue pair 0x%x talks to 0x%x\n", qp->qp_num, ntohl(theirs.qp_num));
    return theirs;
}

/* Step 5: the queue pair knows its peer (RTR, ready to receive) and may send (RTS, ready to send). */
static void connect_to(struct address peer)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = ntohl(peer.qp_num),
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    check(!ibv_modify_qp(qp, &rtr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "ibv_modify_qp to RTR");
    check(!ibv_modify_qp(qp, &rts,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC),
          "ibv_modify_qp to RTS");
}

/* Step 6: polls a completion queue until work has ended. */
static void wait_for(struct ibv_cq *cq, const char *what)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(cq, 1, &wc)))
        ;
    check(count > 0, "ibv_poll_cq");
    if (wc.status) {
        fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc.status));
        exit(1);
    }
}

/* Step 7: a message leaves, and one arrives. */
static void send_text(const char *text, int round)
{
    struct ibv_sge sge = {.addr = (uintptr_t)outgoing, .length = SIZE, .lkey = outgoing_mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    snprintf(outgoing, SIZE, "%s %d", text, round);
    check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
    wait_for(send_cq, "send");
}

static void receive_text(void)
{
    wait_for(recv_cq, "receive");
    printf("received %s\n", incoming);
    post_receive(); /* for the next message */
}

/* Step 8: everything is given back, in the opposite order. */
static void destroy(void)
{
    check(!ibv_destroy_qp(qp) && !ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq), "ibv_destroy_qp");
    check(!ibv_dereg_mr(outgoing_mr) && !ibv_dereg_mr(incoming_mr) && !ibv_dealloc_pd(pd), "ibv_dereg_mr");
    check(!ibv_close_device(context), "ibv_close_device");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    create();
    init();
    post_receive();
    connect_to(exchange(argc > 1 ? argv[1] : NULL));
    for (int round = 1; round <= ROUNDS; round++) {
        if (argc > 1)
            send_text("ping", round);
        receive_text();
        if (argc == 1)
            send_text("pong", round);
    }
    destroy();
    return 0;
}
