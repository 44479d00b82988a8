/* Programs that hang, each for one cause that `softverbs why` must name: hangs CAUSE. It prints its process's number
 * when it hangs. Those from `unemptied` on are hangs that users of other libraries have reported
 * (docs/evidence/audit.md has the links). */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static struct ibv_srq *srq; /* of the queue pairs that are made; NULL: no SRQ */
static union ibv_gid gid;
static char memory[4096];
static pid_t partner; /* another process of this program */
static enum ibv_qp_type type = IBV_QPT_RC;

static void initialize(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        exit(2);
}

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = type, .cap = {8, 8, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    if (!qp)
        exit(2);
    initialize(qp);
    return qp;
}

static struct ibv_qp_attr rts = {
    .qp_state = IBV_QPS_RTS, .timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};

static void connect_to(struct ibv_qp *qp, uint32_t number)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = number & 0xffffff,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
        ibv_modify_qp(qp, &rts,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC))
        exit(2);
}

static int try_to_send(struct ibv_qp *qp, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};
    return ibv_post_send(qp, &wr, &bad);
}

static void send_from(struct ibv_qp *qp, unsigned flags)
{
    if (try_to_send(qp, flags))
        exit(2);
}

static void receive_at(struct ibv_qp *qp)
{
    struct ibv_sge sge = {(uintptr_t)memory + 64, 64, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    if (ibv_post_recv(qp, &wr, &bad))
        exit(2);
}

static void open_device(unsigned which)
{
    int devices = 0;
    struct ibv_device **list = ibv_get_device_list(&devices);
    context = (int)which < devices ? ibv_open_device(list[which]) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    channel = pd ? ibv_create_comp_channel(context) : NULL;
    cq = channel ? ibv_create_cq(context, 16, NULL, channel, 0) : NULL;
    mr = cq ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!mr || ibv_query_gid(context, 1, 0, &gid))
        exit(2);
}

static void poll_one(void)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(cq, 1, &wc))
        usleep(1000);
}

static void send_some(struct ibv_qp *qp, unsigned count)
{
    while (count--) {
        receive_at(qp);
        send_from(qp, IBV_SEND_SIGNALED);
    }
}

static void tell(void)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
}

static void get_event(void)
{
    struct ibv_cq *out;
    void *user;
    if (ibv_get_cq_event(channel, &out, &user))
        exit(2);
}

static struct ibv_qp *looped(void)
{
    struct ibv_qp *qp = make_qp();
    connect_to(qp, qp->qp_num);
    return qp;
}

static void meet_no_receive(void)
{
    usleep(20000); /* the answer to the message is that no receive is there */
}

/* -- causes: each returns when it is about to hang */

static void unsignalled(void)
{
    struct ibv_qp *qp = looped();
    receive_at(qp);
    send_from(qp, 0);
    poll_one(); /* the receive's */
    tell();
}

static void unarmed(void)
{
    send_some(looped(), 1);
    tell();
    get_event();
}

static void init(void)
{
    connect_to(make_qp(), make_qp()->qp_num);
    tell();
}

static void deaf(void)
{
    struct ibv_qp *qp = make_qp();
    connect_to(qp, make_qp()->qp_num);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

static void receives(void)
{
    send_from(looped(), IBV_SEND_SIGNALED);
    tell();
}

static void nobody(void)
{
    struct ibv_qp *qp = make_qp();
    connect_to(qp, qp->qp_num ^ 0x800000);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

static void message(void)
{
    receive_at(looped());
    tell();
}

/* One entry is polled for an event that announces four, and the queue is not armed again (libfabric, issue 796). */
static void unemptied(void)
{
    struct ibv_qp *qp = looped();
    ibv_req_notify_cq(cq, 0);
    send_some(qp, 2);
    get_event();
    ibv_ack_cq_events(cq, 1);
    poll_one();
    tell();
    get_event();
}

/* UCX, issue 1039: the events of one queue were acknowledged at another. */
static void unacknowledged(void)
{
    struct ibv_qp *qp = looped();
    ibv_req_notify_cq(cq, 0);
    send_some(qp, 1);
    get_event();
    ibv_destroy_qp(qp);
    tell();
    ibv_destroy_cq(cq);
}

/* The queue at which UCX acknowledged them. */
static void overacknowledged(void)
{
    ibv_ack_cq_events(cq, 2);
    tell();
    ibv_destroy_cq(cq);
}

/* UCX, pull request 10505: receives of a shared receive queue run out. */
static void short_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    srq = ibv_create_srq(pd, &attr);
    send_from(looped(), IBV_SEND_SIGNALED);
    tell();
}

/* libfabric, pull request 4345: what posts again and again never polls. */
static void full(void)
{
    struct ibv_qp *qp = looped();
    send_some(qp, 8);
    tell();
    while (try_to_send(qp, IBV_SEND_SIGNALED))
        usleep(10000);
}

/* The peer's queue pair is gone when the request arrives, which is not repeated. */
static void destroyed(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(qp, peer->qp_num);
    connect_to(peer, qp->qp_num);
    ibv_destroy_qp(peer);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

/* A queue pair that had worked. */
static void reset(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(qp, peer->qp_num);
    connect_to(peer, qp->qp_num);
    receive_at(peer);
    send_from(qp, IBV_SEND_SIGNALED);
    poll_one();
    poll_one();
    if (ibv_modify_qp(peer, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE))
        exit(2);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

static struct ibv_qp *pair(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(peer, qp->qp_num);
    connect_to(qp, peer->qp_num);
    return qp;
}

static void first_psn(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(peer, qp->qp_num);
    rts.sq_psn = 100;
    connect_to(qp, peer->qp_num);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

static void other_peer(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp(), *other = make_qp();
    connect_to(peer, other->qp_num);
    connect_to(other, peer->qp_num);
    connect_to(qp, peer->qp_num);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

static void move_to_err(struct ibv_qp *qp)
{
    if (ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE))
        exit(2);
}

static void peer_in_err(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(peer, qp->qp_num);
    connect_to(qp, peer->qp_num);
    move_to_err(peer);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

static void in_err(void)
{
    move_to_err(looped());
    tell();
}

/* A key that no region has. */
static void fail(struct ibv_qp *qp)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey ^ 0x5a5a00};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    if (ibv_post_send(qp, &wr, &bad))
        exit(2);
    poll_one();
}

static void failed(void)
{
    fail(pair());
    tell();
}

static void peer_failed(void)
{
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(peer, qp->qp_num);
    connect_to(qp, peer->qp_num);
    fail(peer);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

/* The program numbers its packets from 100 on, and expects them from 0 on; the number of its peer is its own. */
static void itself(void)
{
    rts.sq_psn = 100;
    send_from(looped(), IBV_SEND_SIGNALED);
    tell();
}

static void other_type(void)
{
    struct ibv_qp *qp = make_qp();
    type = IBV_QPT_UC;
    connect_to(qp, make_qp()->qp_num);
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

/* The peer is on the second device, whose port the test lets go down. */
static void peer_port_down(void)
{
    struct ibv_qp *qp = make_qp();
    struct ibv_mr *own_mr = mr;
    union ibv_gid own = gid;
    open_device(1);
    struct ibv_qp *peer = make_qp();
    connect_to(qp, peer->qp_num);
    gid = own;
    mr = own_mr;
    connect_to(peer, qp->qp_num);
    tell();
    getchar();
    send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

/* A page whose bytes never arrive, so that its reader waits. */
static char *empty_page(void)
{
    enum { PAGE = 4096 };
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (page == MAP_FAILED || faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range))
        exit(77);
    return page;
}

static void *post_from_empty_page(void *qp)
{
    struct ibv_sge sge = {(uintptr_t)empty_page(), 8, 0};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    exit(ibv_post_send(qp, &wr, &bad));
}

/* The peer has dropped the request (first_psn), and then a thread stays in a call of it. */
static void within_call(void)
{
    pthread_t thread;
    struct ibv_qp *qp = make_qp(), *peer = make_qp();
    connect_to(peer, qp->qp_num);
    rts.sq_psn = 100;
    connect_to(qp, peer->qp_num);
    send_from(qp, IBV_SEND_SIGNALED);
    meet_no_receive();
    if (pthread_create(&thread, NULL, post_from_empty_page, peer))
        exit(2);
    tell();
}

static void no_receive(void)
{
    pair();
    tell();
}

/* A program that does not look at the result of its post. */
static void refused_post(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, 2000, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_post_send(pair(), &wr, &bad);
    tell();
}

static void refused_receive(void)
{
    struct ibv_sge sges[2] = {{(uintptr_t)memory, 8, mr->lkey}, {(uintptr_t)memory, 8, mr->lkey}};
    struct ibv_recv_wr *bad, wr = {.sg_list = sges, .num_sge = 2};
    ibv_post_recv(pair(), &wr, &bad);
    tell();
}

static void refused_shared_receive(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_sge sges[2] = {{(uintptr_t)memory, 8, mr->lkey}, {(uintptr_t)memory, 8, mr->lkey}};
    struct ibv_recv_wr *bad, wr = {.sg_list = sges, .num_sge = 2};
    srq = ibv_create_srq(pd, &attr);
    looped();
    ibv_post_srq_recv(srq, &wr, &bad);
    tell();
}

static void refused_bind(void)
{
    struct ibv_mw *window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_INLINE, .bind_info = {mr, (uintptr_t)memory, 8, 0}};
    if (!window)
        exit(2);
    ibv_bind_mw(pair(), window, &bind);
    tell();
}

static void open_batch(void)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .qp_type = IBV_QPT_RC,
                                       .cap = {4, 4, 1, 1, 0},
                                       .pd = pd,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
    if (!qp)
        exit(2);
    initialize(qp);
    connect_to(qp, qp->qp_num);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
    tell();
}

static struct ibv_qp *make_ud(uint32_t qkey)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        exit(2);
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        exit(2);
    attr.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
        exit(2);
    return qp;
}

/* A datagram with the Q_Key 7 for a queue pair that has 8. */
static void wrong_qkey(void)
{
    struct ibv_ah_attr way = {.is_global = 1, .grh.dgid = gid, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(pd, &way);
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_qp *receiver = make_ud(8);
    receive_at(receiver);
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = receiver->qp_num;
    wr.wr.ud.remote_qkey = 7;
    if (!ah || ibv_post_send(make_ud(7), &wr, &bad))
        exit(2);
    poll_one();
    tell();
}

/* The number of a queue pair of another process of this program, which is connected with this one. */
static uint32_t begin_partner(const char *how, uint32_t number)
{
    int ends[2], partners;
    char text[16];
    if (pipe(ends))
        exit(2);
    snprintf(text, sizeof text, "%u", number);
    if (!(partner = fork())) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "hangs", how, text, (char *)NULL);
        _exit(2);
    }
    FILE *out = fdopen(ends[0], "r");
    if (!out || fscanf(out, "%d", &partners) != 1)
        exit(2);
    return (uint32_t)partners;
}

static void be_partner(uint32_t number, int signal)
{
    struct ibv_qp *qp = make_qp();
    connect_to(qp, number);
    receive_at(qp);
    printf("%u\n", qp->qp_num);
    fflush(stdout);
    if (signal)
        raise(signal);
}

/* The process waits for a message of a peer that it has sent one to. */
static void killed(void)
{
    struct ibv_qp *qp = make_qp();
    uint32_t number = begin_partner("wait", qp->qp_num);
    connect_to(qp, number);
    receive_at(qp);
    send_from(qp, IBV_SEND_SIGNALED);
    poll_one();
    kill(partner, SIGKILL);
    wait(NULL);
    tell();
}

static void stopped(void)
{
    struct ibv_qp *qp = make_qp();
    int status;
    connect_to(qp, begin_partner("stop", qp->qp_num));
    waitpid(-1, &status, WUNTRACED);
    for (int i = 0; i < 3; i++)
        send_from(qp, IBV_SEND_SIGNALED);
    tell();
}

/* Messages that found no receive once, and are done; then some that are not signalled. */
static void late_receive(void)
{
    struct ibv_qp *qp = looped();
    send_from(qp, IBV_SEND_SIGNALED);
    meet_no_receive();
    receive_at(qp);
    poll_one();
    poll_one();
    receive_at(qp);
    receive_at(qp);
    send_from(qp, 0);
    send_from(qp, 0);
    poll_one();
    poll_one();
    tell();
}

/* -- no hang: each message finds no receive at first */

static void moves(void)
{
    struct ibv_qp *qp = looped();
    tell();
    for (;;) {
        send_from(qp, IBV_SEND_SIGNALED);
        meet_no_receive();
        receive_at(qp);
        poll_one();
        poll_one();
    }
}

/* -- no hang: many refusals in a row, and an end */

static void refusals(void)
{
    struct ibv_qp *qp = looped();
    for (unsigned i = 0; i < 8; i++)
        receive_at(qp);
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    for (unsigned i = 0; i < 92; i++)
        if (!ibv_post_recv(qp, &wr, &bad))
            exit(2);
    exit(0);
}

static const struct {
    const char *name;
    void (*begin)(void);
} causes[] = {
    {"unsignalled", unsignalled},
    {"unarmed", unarmed},
    {"init", init},
    {"deaf", deaf},
    {"receives", receives},
    {"nobody", nobody},
    {"message", message},
    {"unemptied", unemptied},
    {"unacknowledged", unacknowledged},
    {"short-srq", short_srq},
    {"overacknowledged", overacknowledged},
    {"full", full},
    {"refusals", refusals},
    {"destroyed", destroyed},
    {"reset", reset},
    {"killed", killed},
    {"first-psn", first_psn},
    {"other-peer", other_peer},
    {"peer-in-err", peer_in_err},
    {"in-err", in_err},
    {"failed", failed},
    {"peer-failed", peer_failed},
    {"itself", itself},
    {"other-type", other_type},
    {"peer-port-down", peer_port_down},
    {"within-call", within_call},
    {"no-receive", no_receive},
    {"refused-post", refused_post},
    {"refused-receive", refused_receive},
    {"refused-shared-receive", refused_shared_receive},
    {"refused-bind", refused_bind},
    {"open-batch", open_batch},
    {"wrong-qkey", wrong_qkey},
    {"stopped", stopped},
    {"late-receive", late_receive},
    {"moves", moves},
};

int main(int argc, char **argv)
{
    open_device(0);
    if (argc == 3)
        be_partner((uint32_t)atoi(argv[2]), strcmp(argv[1], "stop") ? 0 : SIGSTOP);
    for (size_t i = 0; argc == 2 && i < sizeof causes / sizeof *causes; i++)
        if (!strcmp(argv[1], causes[i].name)) {
            causes[i].begin();
            for (;;)
                pause();
        }
    while (argc == 3)
        pause();
    return 2;
}
