/* Two processes, and what becomes of a request whose queue pair asks the other's process about its error: asked CASE
 * [DIRECTORY]. It prints the status of the request; asked_test.py has the cases, and reads the log. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 64, PSN = 7, FIRST_DESCRIPTOR = 3, QUESTIONS_MOST = 4 };

/* The memory that both processes share. */
static struct meeting {
    atomic_uint stage; /* of the server */
    atomic_uint go;    /* to the server */
    uint32_t server, client, rkey;
    uint64_t address;
} * meeting;

enum { NUMBERED = 1, CONNECTED, REFUSED, FULL };

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static union ibv_gid gid;
static char memory[ROOM];
static pid_t server;

static void check(int fails, const char *what)
{
    if (!fails)
        return;
    printf("%s fails\n", what);
    fflush(stdout);
    if (server)
        kill(server, SIGKILL);
    _exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void to_init(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
}

static void make_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
    qp = ibv_create_qp(pd, &init);
    check(!qp, "ibv_create_qp");
    to_init();
}

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    check(!context, "ibv_open_device");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    check(!cq || !mr || ibv_query_gid(context, 1, 0, &gid), "an object");
    make_qp();
}

/* A timeout of 4.096 us * 2^`timeout`, and one retry. */
static void connect_to(uint32_t number, uint8_t timeout)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = number,
                               .rq_psn = PSN,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 1,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 1, .rnr_retry = 7, .sq_psn = PSN, .max_rd_atomic = 1};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
          "RTS");
}

static void modify(enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

static void post(enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {(uintptr_t)memory, ROOM, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 42, .sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = meeting->address;
    wr.wr.rdma.rkey = meeting->rkey;
    check(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, ROOM, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    check(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static int poll_for(struct ibv_wc *wc, double seconds)
{
    int found = 0;
    for (double end = now() + seconds; !found && now() < end;)
        found = ibv_poll_cq(cq, 1, wc);
    return found;
}

static void print(const struct ibv_wc *wc, double since)
{
    printf("%s, vendor_err %u, after %.2f s\n", ibv_wc_status_str(wc->status), wc->vendor_err, now() - since);
}

static void show(void)
{
    struct ibv_wc wc;
    double since = now();
    check(poll_for(&wc, 60) != 1, "a completion");
    print(&wc, since);
}

static void await(const atomic_uint *what, unsigned value)
{
    for (double end = now() + 60; atomic_load(what) < value && now() < end;)
        usleep(100);
    check(atomic_load(what) < value, "the other");
}

static void use_up_descriptors(void)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = FIRST_DESCRIPTOR; /* first: a million descriptors take longer than the peer waits */
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        ;
}

/* -- the server's part */

/* Until it has refused a READ, for which its qp_access_flags have no leave. */
static void refuse(void)
{
    struct ibv_wc wc;
    await(&meeting->go, CONNECTED);
    connect_to(meeting->client, 14);
    post_receive(); /* which is flushed then */
    atomic_store(&meeting->stage, CONNECTED);
    check(poll_for(&wc, 60) != 1, "the server's completion");
}

static void refuse_and_stop(void)
{
    refuse();
    atomic_store(&meeting->stage, REFUSED);
    raise(SIGSTOP);
}

static void refuse_and_destroy(void)
{
    refuse();
    check(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void fill_descriptors(void)
{
    await(&meeting->go, FULL);
    use_up_descriptors();
    atomic_store(&meeting->stage, FULL);
}

static void stay(void)
{
}

/* -- the client's */

static void meet(void)
{
    meeting->client = qp->qp_num;
    atomic_store(&meeting->go, CONNECTED);
    await(&meeting->stage, CONNECTED);
}

static void connect_and_read(void)
{
    connect_to(meeting->server, 14);
    meet();
    post(IBV_WR_RDMA_READ);
}

/* The NAK has come, and the server cannot say why. True: the request has ended nevertheless, as on a busy machine. */
static bool be_refused(struct ibv_wc *wc)
{
    connect_and_read();
    await(&meeting->stage, REFUSED);
    return poll_for(wc, 0.02);
}

static void modify_to_error(void)
{
    struct ibv_wc wc;
    double since = now();
    if (!be_refused(&wc)) {
        modify(IBV_QPS_ERR);
        check(poll_for(&wc, 60) != 1, "a completion");
    }
    print(&wc, since);
}

/* Connects to itself, with the same PSN, where what the server refused must not end the new request. */
static void connect_anew(void)
{
    struct ibv_wc wc;
    be_refused(&wc);
    modify(IBV_QPS_RESET);
    to_init();
    connect_to(qp->qp_num, 14);
    post(IBV_WR_SEND);
    check(poll_for(&wc, 0.3) != 0, "waiting for a receive");
    post_receive();
    check(poll_for(&wc, 60) != 1, "the receive");
    show();
}

static void stop_late_enough(void)
{
    usleep(200000); /* between the first try and the last, after 0.27 s */
    kill(server, SIGSTOP);
}

/* The server, which stays in INIT, is stopped between the first try and the last. */
static void stop_late(void)
{
    connect_to(meeting->server, 15);
    post(IBV_WR_SEND);
    stop_late_enough();
    show();
}

/* One of two queue pairs stays in INIT. */
static void ask_itself(void)
{
    uint32_t first = qp->qp_num;
    make_qp();
    connect_to(first, 8);
    post(IBV_WR_SEND);
    show();
}

static void begin(void (*part)(void));

/* Each generation forks while it asks its own server, which is stopped; the last one asks itself. A child that took its
 * parent's questions for its own would ask no more then. */
static void fork_while_asking(void)
{
    static unsigned generation;
    struct ibv_wc wc;
    if (generation++ == QUESTIONS_MOST) {
        return ask_itself();
    }
    connect_to(meeting->server, 15);
    post(IBV_WR_SEND);
    stop_late_enough();
    poll_for(&wc, 0.12); /* the last retry has passed after 0.27 s */
    pid_t child = fork();
    if (!child) {
        atomic_store(&meeting->stage, 0);
        begin(stay);
        fork_while_asking();
        fflush(stdout);
        kill(server, SIGKILL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void own_descriptors(void)
{
    connect_to(meeting->server, 8);
    use_up_descriptors();
    post(IBV_WR_SEND);
    show();
}

static void descriptors_of_the_server(void)
{
    connect_to(meeting->server, 17);
    post(IBV_WR_SEND);
    usleep(20000); /* the server, which says nothing, gets the message */
    atomic_store(&meeting->go, FULL);
    await(&meeting->stage, FULL);
    show();
}

/* All sockets of the directory become another user's. */
static void give_sockets_away(void)
{
    enum { STRANGER = 65534 };
    DIR *directory = opendir(".");
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (strstr(entry->d_name, ".sock"))
            check(chown(entry->d_name, STRANGER, STRANGER), "chown");
    closedir(directory);
}

static void ask_stranger(void)
{
    connect_to(meeting->server, 8);
    give_sockets_away();
    post(IBV_WR_SEND);
    show();
}

static void read_and_show(void)
{
    connect_and_read();
    show();
}

static const struct {
    const char *name;
    void (*serve)(void), (*play)(void);
} cases[] = {
    {"error", refuse_and_stop, modify_to_error},
    {"reset", refuse_and_stop, connect_anew},
    {"stop", stay, stop_late},
    {"fork", stay, fork_while_asking},
    {"descriptors", stay, own_descriptors},
    {"descriptors-there", fill_descriptors, descriptors_of_the_server},
    {"destroy", refuse_and_destroy, read_and_show},
    {"stranger", stay, ask_stranger},
};

static void serve(void (*part)(void))
{
    make_objects();
    meeting->server = qp->qp_num;
    meeting->rkey = mr->rkey;
    meeting->address = (uintptr_t)memory;
    atomic_store(&meeting->stage, NUMBERED);
    part();
    for (;;)
        pause();
}

/* A server for this process, which is its client. */
static void begin(void (*part)(void))
{
    server = fork();
    if (!server)
        serve(part);
    await(&meeting->stage, NUMBERED);
    make_objects();
}

int main(int argc, char **argv)
{
    size_t i = 0, count = sizeof cases / sizeof *cases;
    while (i < count && strcmp(cases[i].name, argc > 1 ? argv[1] : ""))
        i++;
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (i == count || meeting == MAP_FAILED || (argc > 2 && chdir(argv[2])))
        return 2;
    begin(cases[i].serve);
    cases[i].play();
    fflush(stdout);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
