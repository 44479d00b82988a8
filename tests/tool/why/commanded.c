/* An end of a connection that obeys its input: commanded RC|UC TIMEOUT. It prints its process's number, the number of
 * its queue pair, its GID and a key and an address of its memory. Its input has the same numbers of the peer, and then
 * commands: send, write, poll, end. A receive is posted. */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 64, ROCE_V2 = 1 };

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static char memory[ROOM];
static unsigned peer_key;
static unsigned long peer_address;

static void check(bool fails, const char *what)
{
    if (!fails)
        return;
    perror(what);
    exit(2);
}

static void modify(struct ibv_qp_attr *attr, int mask, int mask_of_rc)
{
    check(ibv_modify_qp(qp, attr, mask | (qp->qp_type == IBV_QPT_RC ? mask_of_rc : 0)), "ibv_modify_qp");
}

static void make_objects(enum ibv_qp_type type)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
    mr = cq ? ibv_reg_mr(pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    qp = mr ? ibv_create_qp(pd, &init) : NULL;
    check(!qp, "ibv_create_qp");
    modify(&attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0);
}

static void connect_to(unsigned number, union ibv_gid gid, unsigned timeout)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = number,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = ROCE_V2, .hop_limit = 1}}};
    modify(&attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = (uint8_t)timeout, .retry_cnt = 2, .rnr_retry = 7, .max_rd_atomic = 1};
    modify(&attr, IBV_QP_STATE | IBV_QP_SQ_PSN,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void meet(unsigned timeout)
{
    char text[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN + 1];
    union ibv_gid gid;
    unsigned number;
    check(ibv_query_gid(context, 1, ROCE_V2, &gid) && ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
    printf("%d %u %s %u %lu\n", (int)getpid(), qp->qp_num, inet_ntop(AF_INET6, &gid, text, sizeof text), mr->rkey,
           (unsigned long)memory);
    fflush(stdout);
    check(scanf("%u %46s %u %lu", &number, theirs, &peer_key, &peer_address) != 4, "no peer");
    check(inet_pton(AF_INET6, theirs, &gid) != 1, "no GID");
    connect_to(number, gid, timeout);
}

static void receive(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, ROOM, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    check(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void post(enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {(uintptr_t)memory, ROOM, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.rkey = peer_key;
    wr.wr.rdma.remote_addr = peer_address;
    check(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void poll_one(void)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(cq, 1, &wc))
        usleep(1000);
    puts(ibv_wc_status_str(wc.status));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char command[16];
    make_objects(argc > 1 && !strcmp(argv[1], "UC") ? IBV_QPT_UC : IBV_QPT_RC);
    meet(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
    receive();
    puts("connected");
    fflush(stdout);
    while (scanf("%15s", command) == 1) {
        if (!strcmp(command, "send") || !strcmp(command, "write"))
            post(*command == 's' ? IBV_WR_SEND : IBV_WR_RDMA_WRITE);
        else if (!strcmp(command, "poll"))
            poll_one();
        else
            _exit(0);
    }
    return 0;
}
