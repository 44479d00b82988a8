/* One queue pair of SRD that sends to many others. Usage, under a profile of EFA: srd_peers PEERS [PROCESSES]. Without
 * processes the peers belong to this one, and callgrind counts each function whose name begins with `count_`, which
 * passes STEPS messages to peers in turn (bench/costs.py). With them, prints the time of a message to a random peer. */
#include <errno.h>
#include <infiniband/efadv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum { STEPS = 64, BATCHES = 16, MOST = 16384, PROCESSES = 64, SENDS = 128, TIMED = 2000, SECONDS = 60 };

static struct shared {
    uint32_t numbers[MOST];
    atomic_uint ready;
} * shared;

struct ends {
    struct endpoint endpoint;
    struct ibv_mr *mr;
    struct ibv_qp *qps[MOST + 1];
    unsigned count;
};

static char memory[64];
static struct ends hub, mine; /* the sender; the peers of this process */
static struct ibv_ah *ah;
static unsigned peers, turn;

static struct ibv_qp *create_qp(struct ends *ends, unsigned sends, unsigned receives)
{
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    struct ibv_qp_init_attr_ex init = {.send_cq = ends->endpoint.cq,
                                       .recv_cq = ends->endpoint.cq,
                                       .cap = {sends, receives, 1, 1, 0},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = ends->endpoint.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = ENDPOINT_QKEY};
    struct ibv_qp *qp = efadv_create_qp_ex(ends->endpoint.context, &init, &efa, sizeof efa);
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        die("no queue pair of SRD");
    attr.qp_state = IBV_QPS_RTR;
    errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (errno || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
        die("a queue pair of SRD does not go to RTS");
    return ends->qps[ends->count++] = qp;
}

static void open_ends(struct ends *ends)
{
    endpoint_open(&ends->endpoint, MOST);
    ends->mr = ibv_reg_mr(ends->endpoint.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    if (!ends->mr)
        die("no memory region");
}

/* A batch finds one for each message. */
static unsigned receives(void)
{
    return 2 + 2 * STEPS / peers;
}

static void post_receive(struct ends *ends, unsigned which)
{
    struct ibv_sge sge = {(uintptr_t)memory, sizeof memory, ends->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = which, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(ends->qps[which], &wr, &bad))
        die("a receive is refused");
}

/* Peers from `first` on; the last one says how many are ready. */
static void open_peers(unsigned first, unsigned count)
{
    open_ends(&mine);
    for (unsigned i = 0; i < count; i++) {
        shared->numbers[first + i] = create_qp(&mine, 1, receives())->qp_num;
        for (unsigned receive = 0; receive < receives(); receive++)
            post_receive(&mine, i);
    }
    shared->ready += count;
}

static inline void post(uint32_t receiver)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, hub.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = receiver;
    wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
    if (ibv_post_send(hub.qps[0], &wr, &bad))
        die("a send is refused");
}

static inline void take_end(void)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(hub.endpoint.cq, 1, &wc))
        ;
    if (wc.status)
        die("a message ends with %s", ibv_wc_status_str(wc.status));
}

/* Peers in turn, so that each message goes to one that was not used for long. */
static uint32_t next_peer(void)
{
    turn += 7919; /* a prime: all of them come */
    return shared->numbers[turn % peers];
}

__attribute__((noinline)) static void count_messages(void)
{
    for (int i = 0; i < STEPS; i++) {
        post(next_peer());
        take_end();
    }
}

/* The oldest message waits for a receive, and keeps its place meanwhile. The statement of no code keeps the compiler
 * from making one function of two alike. */
__attribute__((noinline)) static void count_beside(void)
{
    for (int i = 0; i < STEPS; i++) {
        __asm__ volatile("");
        post(next_peer());
        take_end();
    }
}

__attribute__((noinline)) static void count_posts(void)
{
    for (int i = 0; i < STEPS; i++)
        post(next_peer());
}

/* Gives the receives back that messages took. */
static void refill(void)
{
    struct ibv_wc wc;
    while (mine.endpoint.cq && ibv_poll_cq(mine.endpoint.cq, 1, &wc))
        post_receive(&mine, (unsigned)wc.wr_id);
}

static void take_ends(unsigned count)
{
    while (count--) {
        take_end();
        refill();
    }
}

static void greet_all(void)
{
    for (unsigned i = 0; i < peers; i++) {
        post(shared->numbers[i]);
        take_ends(1);
    }
}

static void count_all(void)
{
    for (int batch = 0; batch < BATCHES; batch++) {
        count_messages();
        refill();
        count_posts();
        take_ends(STEPS);
    }
    post(create_qp(&mine, 1, 1)->qp_num);
    for (int batch = 0; batch < BATCHES; batch++) {
        count_beside();
        refill();
    }
}

static void time_all(void)
{
    double begin = now_seconds();
    for (int i = 0; i < TIMED; i++) {
        post(next_peer());
        take_end();
    }
    printf("message %.2f\n", (now_seconds() - begin) * 1e6 / TIMED);
}

static void serve(unsigned first, unsigned count)
{
    struct ibv_wc wc[16];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_peers(first, count);
    for (;;)
        for (int found = endpoint_wait(&mine.endpoint, wc, 16, SECONDS), i = 0; i < found; i++)
            post_receive(&mine, (unsigned)wc[i].wr_id);
}

int main(int argc, char **argv)
{
    unsigned processes = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    pid_t pids[PROCESSES];
    peers = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!peers || peers > MOST || processes > PROCESSES || shared == MAP_FAILED)
        die("Usage: srd_peers PEERS [PROCESSES]");
    for (unsigned i = 0; i < processes; i++)
        if (!(pids[i] = fork()))
            serve(i * (peers / processes), peers / processes);
    if (!processes)
        open_peers(0, peers);
    peers = processes ? peers / processes * processes : peers;
    open_ends(&hub);
    create_qp(&hub, SENDS, 1);
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = hub.endpoint.gid}};
    ah = ibv_create_ah(hub.endpoint.pd, &attr);
    if (!ah)
        die("no address handle");
    for (double deadline = now_seconds() + SECONDS; shared->ready < peers; usleep(1000))
        if (now_seconds() > deadline)
            die("%u of %u peers are ready", shared->ready, peers);
    greet_all();
    if (processes)
        time_all();
    else
        count_all();
    for (unsigned i = 0; i < processes; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return 0;
}
