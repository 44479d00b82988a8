/* Both ends of connections that were given what does not go together, and right twins: ends NAME. Most have all
 * queue pairs in one process. It does nothing but connect; what the screen says is for ends_test.py. */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QPS = 4 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(2);
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0] && (context = ibv_open_device(list[0])), "ibv_open_device");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    need(pd && cq, "the device's objects");
}

static struct ibv_qp *make(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = {8, 8, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    need(qp, "ibv_create_qp");
    return qp;
}

static void connect_by(struct ibv_qp *qp, uint32_t number, enum ibv_mtu mtu, int gid_index)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int connection = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
        start = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp->qp_type == IBV_QPT_RC) {
        connection |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        start |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = number};
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .grh.sgid_index = (uint8_t)gid_index, .port_num = 1};
    need(!ibv_query_gid(context, 1, gid_index, &attr.ah_attr.grh.dgid), "ibv_query_gid");
    need(!ibv_modify_qp(qp, &attr, connection), "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    need(!ibv_modify_qp(qp, &attr, start), "RTS");
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer)
{
    connect_by(qp, peer->qp_num, IBV_MTU_1024, 0);
}

static void reset(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RESET");
}

static void right(void)
{
    struct ibv_qp *one = make(IBV_QPT_RC), *other = make(IBV_QPT_RC);
    connect_to(one, other);
    connect_to(other, one);
    one = make(IBV_QPT_RC);
    connect_to(one, one);
}

static void mtu(void)
{
    struct ibv_qp *one = make(IBV_QPT_RC), *other = make(IBV_QPT_RC);
    connect_by(one, other->qp_num, IBV_MTU_4096, 0);
    connect_by(other, one->qp_num, IBV_MTU_1024, 0);
}

static void mtu_of_uc(void)
{
    struct ibv_qp *one = make(IBV_QPT_UC), *other = make(IBV_QPT_UC);
    connect_by(one, other->qp_num, IBV_MTU_512, 0);
    connect_by(other, one->qp_num, IBV_MTU_1024, 0);
}

static void families(void)
{
    struct ibv_qp *one = make(IBV_QPT_RC), *other = make(IBV_QPT_RC);
    connect_by(one, other->qp_num, IBV_MTU_1024, 0);
    connect_by(other, one->qp_num, IBV_MTU_1024, 1);
}

/* Both were connected before, and one begins the next connection while the other has the old one. */
static void connected_anew(void)
{
    struct ibv_qp *one = make(IBV_QPT_RC), *other = make(IBV_QPT_RC);
    connect_to(one, other);
    connect_to(other, one);
    reset(one);
    connect_by(one, other->qp_num, IBV_MTU_4096, 0);
    reset(other);
    connect_by(other, one->qp_num, IBV_MTU_4096, 0);
}

/* The one is connected wrongly, and then anew, before the other is connected. */
static void corrected(void)
{
    struct ibv_qp *one = make(IBV_QPT_RC), *other = make(IBV_QPT_RC), *gone = make(IBV_QPT_RC);
    connect_by(gone, other->qp_num, IBV_MTU_4096, 0);
    need(!ibv_destroy_qp(gone), "ibv_destroy_qp");
    connect_by(one, other->qp_num, IBV_MTU_4096, 0);
    reset(one);
    connect_to(other, one);
    connect_to(one, other);
}

static void make_four(struct ibv_qp *qps[QPS], enum ibv_qp_type type)
{
    for (int i = 0; i < QPS; i++)
        qps[i] = make(type);
}

/* 0 and 1 of one side, 2 and 3 of the other, in two orders. */
static void crossed(void)
{
    struct ibv_qp *qps[QPS];
    make_four(qps, IBV_QPT_RC);
    connect_to(qps[0], qps[2]);
    connect_to(qps[1], qps[3]);
    connect_to(qps[2], qps[1]);
    connect_to(qps[3], qps[0]);
}

/* A server's queue pair takes the next client, which is earlier than the server. */
static void next_client(void)
{
    struct ibv_qp *qps[QPS];
    make_four(qps, IBV_QPT_RC);
    connect_to(qps[0], qps[1]);
    connect_to(qps[1], qps[0]);
    connect_to(qps[2], qps[1]);
    reset(qps[1]);
    connect_to(qps[1], qps[2]);
}

/* Over UC nothing comes back, so messages may go round. */
static void ring_of_uc(void)
{
    struct ibv_qp *qps[QPS];
    make_four(qps, IBV_QPT_UC);
    for (int i = 0; i < QPS; i++)
        connect_to(qps[i], qps[(i + 1) % QPS]);
}

static void pass(int to, uint32_t number)
{
    need(write(to, &number, sizeof number) == sizeof number, "write");
}

static uint32_t take(int from)
{
    uint32_t number;
    need(read(from, &number, sizeof number) == sizeof number, "read");
    return number;
}

/* The child is connected first, and stays until the parent is connected, too. */
static void two_processes(void)
{
    int up[2], down[2];
    need(!pipe(up) && !pipe(down), "pipe");
    pid_t child = fork();
    open_device();
    struct ibv_qp *qp = make(IBV_QPT_RC);
    pass(child ? down[1] : up[1], qp->qp_num);
    uint32_t number = take(child ? up[0] : down[0]);
    if (child)
        take(up[0]);
    connect_by(qp, number, child ? IBV_MTU_1024 : IBV_MTU_4096, 0);
    pass(child ? down[1] : up[1], 0);
    if (!child) {
        take(down[0]);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool opens; /* it opens the device itself */
} cases[] = {
    {"two-processes", two_processes, true},
    {"right", right},
    {"mtu", mtu},
    {"mtu-of-uc", mtu_of_uc},
    {"families", families},
    {"connected-anew", connected_anew},
    {"corrected", corrected},
    {"crossed", crossed},
    {"next-client", next_client},
    {"ring-of-uc", ring_of_uc},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            if (!cases[i].opens)
                open_device();
            cases[i].run();
            return 0;
        }
    return 2;
}
