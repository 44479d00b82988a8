/* A first program of InfiniBand: two ends tell each other the LID of their port and the number of their queue pair over
 * a socket, connect the queue pairs, and send a message to and fro 1000 times.
 *
 *     softverbs run --link-layer ib -- ./lid_pingpong 18515                 the end that waits
 *     softverbs run --link-layer ib -- ./lid_pingpong 18515 127.0.0.1       the other
 *
 * On RoCE, which has no LIDs, ibv_modify_qp says EINVAL: its addresses need a GRH. */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 1000 };

struct end {
    uint32_t lid, qp_number;
};

static char message[64];

static void check(int failed, const char *what)
{
    if (failed) {
        perror(what);
        exit(1);
    }
}

static struct end exchange(const char *port, const char *host, struct end mine)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    struct end theirs = {0};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (host) {
        inet_pton(AF_INET, host, &address.sin_addr);
        check(connect(fd, (struct sockaddr *)&address, sizeof address), "connect");
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        check(bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1), "listen");
        fd = accept(fd, NULL, NULL);
    }
    check(write(fd, &mine, sizeof mine) != sizeof mine || read(fd, &theirs, sizeof theirs) != sizeof theirs,
          "exchange");
    close(fd);
    return theirs;
}

static void connect_qp(struct ibv_qp *qp, struct end peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer.qp_number,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 12,
                              .ah_attr = {.dlid = (uint16_t)peer.lid, .port_num = 1}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    check(ibv_modify_qp(qp, &rtr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "RTR");
    check(ibv_modify_qp(qp, &rts,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
          "RTS");
}

static void finish(struct ibv_cq *cq)
{
    struct ibv_wc completion;
    while (!ibv_poll_cq(cq, 1, &completion))
        ;
    if (completion.status)
        fprintf(stderr, "a completion says: %s\n", ibv_wc_status_str(completion.status)), exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    struct ibv_port_attr port;
    struct ibv_recv_wr *bad_receive;
    struct ibv_send_wr *bad_send;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices && *devices ? ibv_open_device(*devices) : NULL;
    check(!context, "ibv_open_device");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = ibv_reg_mr(pd, message, sizeof message, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *sent = ibv_create_cq(context, 1, NULL, NULL, 0),
                  *received = ibv_create_cq(context, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {.send_cq = sent,
                                    .recv_cq = received,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    check(!mr || !qp || ibv_query_port(context, 1, &port), "preparing");
    struct end peer = exchange(argv[1], argc > 2 ? argv[2] : NULL, (struct end){port.lid, qp->qp_num});
    connect_qp(qp, peer);
    struct ibv_sge sge = {(uintptr_t)message, sizeof message, mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    for (int round = 0; round < 2 * ROUNDS; round++) {
        if (round % 2 == (argc > 2)) { /* it is the peer's turn */
            check(ibv_post_recv(qp, &receive, &bad_receive), "ibv_post_recv");
            finish(received);
        } else {
            snprintf(message, sizeof message, "round %d from LID %u", round, port.lid);
            check(ibv_post_send(qp, &send, &bad_send), "ibv_post_send");
            finish(sent);
        }
    }
    printf("LID %u and LID %u: %d messages each way; the last one here is \"%s\"\n", port.lid, peer.lid, ROUNDS,
           message);
    return 0;
}
