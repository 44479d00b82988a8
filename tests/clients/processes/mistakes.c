/* The usual mistakes of programs, each as a program makes it: mistakes NAME. Two processes connect over RC, and the
 * first sends to, writes to or reads from the second; what NAME changes is wrong. The result is what a program would
 * see: "EINVAL from ibv_modify_qp", "IBV_WC status 12", or "nothing" after a second. The exit status is 0: what the
 * screen says besides is for mistakes_test.py. $MISTAKES_THEN is a command that the shell runs while all is still
 * there. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

/* One side of the connection, as it should be; mistakes change it. */
struct side {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct address theirs;
    struct ibv_ah_attr path;
    int access, qp_access;
    int rtr_mask;
    int completions, sends;
    unsigned receives;
    uint32_t rq_psn;
    enum ibv_wr_opcode opcode;
    enum ibv_mtu mtu;
    uint8_t timeout;
    uint32_t length;
    unsigned acknowledgements; /* of one event */
    bool own_rkey, kills, kills_early, stops, resets, two_contexts, acknowledges_wrongly, secret, own_qpn, second_key,
        careless;                                   /* the last: it looks at no result until it has posted */
    enum { CONNECTS, STAYS_IN_INIT, DESTROYS } end; /* what becomes of its queue pair before the first message */
    bool elsewhere;                                 /* it meets in a separate directory */
    bool sends_too;                                 /* the second one */
    const char *host;                               /* a network namespace, whose interface is eth0; NULL: this one */
    enum { WHOLE, CUT, SWAPPED } address;           /* of the peer's memory */
    uint64_t offset, iova;                          /* of the region, 0: its own address */
};

enum {
    SIZE = 8192,
    PSN = 1000,
    RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
};

static void right(struct side *side)
{
}

/* A second and more: a peer that waits for a processor of a busy machine is not silent. */
static void long_timeout(struct side *side)
{
    side->timeout = 16;
}

static void no_receive(struct side *side)
{
    side->receives = 0;
}

static void short_mask(struct side *side)
{
    side->rtr_mask &= ~IBV_QP_MIN_RNR_TIMER;
}

static void careless(struct side *side)
{
    short_mask(side);
    side->careless = true;
}

static void two_contexts(struct side *side)
{
    side->two_contexts = true;
}

static void no_acknowledgement(struct side *side)
{
    side->acknowledges_wrongly = true;
}

static void two_acknowledgements(struct side *side)
{
    side->acknowledges_wrongly = true;
    side->acknowledgements = 2;
}

static void no_grh(struct side *side)
{
    side->path.is_global = 0;
}

static void gid_index_of_nothing(struct side *side)
{
    side->path.grh.sgid_index = 7;
}

static void zero_gid(struct side *side)
{
    memset(&side->theirs.gid, 0, sizeof side->theirs.gid);
}

static void lid(struct side *side)
{
    side->path.is_global = 0;
    side->path.dlid = 1;
}

static void foreign_gid(struct side *side)
{
    memcpy(side->theirs.gid.raw, (uint8_t[16]){[10] = 0xff, 0xff, 10, 9, 8, 7}, 16);
}

/* The contents of an address vector that was never set to zero. */
static void left_over_rate(struct side *side)
{
    side->path.static_rate = 0xcd;
}

static void wide_qpn(struct side *side)
{
    side->theirs.qp_num |= 0x01000000;
}

static void skewed_iova(struct side *side)
{
    side->iova = 0x40001;
}

static void secret_memory(struct side *side)
{
    side->secret = true;
}

static void no_local_write(struct side *side)
{
    side->access = IBV_ACCESS_REMOTE_WRITE;
}

static void wrong_rkey(struct side *side)
{
    side->opcode = IBV_WR_RDMA_WRITE;
    side->theirs.rkey ^= 0x5500;
}

static void own_rkey(struct side *side)
{
    side->opcode = IBV_WR_RDMA_WRITE;
    side->own_rkey = true;
}

/* The element follows one without bytes, whose key is not looked at. */
static void second_key(struct side *side)
{
    side->second_key = true;
}

static void out_of_bounds(struct side *side)
{
    side->opcode = IBV_WR_RDMA_WRITE;
    side->offset = SIZE - 4;
}

static void cut_address(struct side *side)
{
    side->opcode = IBV_WR_RDMA_WRITE;
    side->address = CUT;
}

static void swapped_address(struct side *side)
{
    side->opcode = IBV_WR_RDMA_READ;
    side->address = SWAPPED;
}

static void no_remote_read(struct side *side)
{
    side->opcode = IBV_WR_RDMA_READ;
    side->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
}

static void no_qp_access(struct side *side)
{
    side->opcode = IBV_WR_RDMA_READ;
    side->qp_access = 0;
}

static void small_cq(struct side *side)
{
    side->completions = 1;
    side->sends = 8;
    side->receives = 8;
}

static void psn_behind(struct side *side)
{
    side->rq_psn = PSN - 500;
}

static void psn_ahead(struct side *side)
{
    side->rq_psn = PSN + 500;
}

static void psn_ahead_of_both(struct side *side)
{
    side->rq_psn = PSN + 500;
    side->sends_too = true;
}

static void own_qpn(struct side *side)
{
    side->own_qpn = true;
    side->rq_psn = 1; /* as the peer would have it begin */
}

static void never_rtr(struct side *side)
{
    side->end = STAYS_IN_INIT;
}

static void destroyed(struct side *side)
{
    side->end = DESTROYS;
}

static void other_directory(struct side *side)
{
    side->elsewhere = true;
}

static void killed_peer(struct side *side)
{
    side->kills = true;
}

static void killed_before(struct side *side)
{
    side->kills_early = true;
}

/* The peer takes every packet, answers no packet, and is stopped before it is asked why. */
static void stopped_late(struct side *side)
{
    side->stops = true;
    side->timeout = 14;
}

static void reset_while_asked(struct side *side)
{
    stopped_late(side);
    side->resets = true;
}

/* Between hosts, as within one a frame may carry more than the path MTU. The peer has seconds to answer. */
static void small_mtu(struct side *side)
{
    long_timeout(side);
    side->mtu = IBV_MTU_512;
    side->length = SIZE;
    side->host = "client";
}

static void large_mtu(struct side *side)
{
    side->host = "server";
}

static const struct mistake {
    const char *name;
    void (*first)(struct side *), (*second)(struct side *); /* by the one that sends, by the other */
} mistakes[] = {
    {"none", right, right},
    {"no-receive", long_timeout, no_receive},
    {"short-mask", short_mask, right},
    {"careless", careless, right},
    {"two-contexts", two_contexts, right},
    {"no-acknowledgement", no_acknowledgement, right},
    {"two-acknowledgements", two_acknowledgements, right},
    {"no-grh", no_grh, right},
    {"gid-index", gid_index_of_nothing, right},
    {"zero-gid", zero_gid, right},
    {"lid", lid, right},
    {"foreign-gid", foreign_gid, right},
    {"left-over-rate", left_over_rate, right},
    {"wide-qpn", wide_qpn, right},
    {"skewed-iova", skewed_iova, right},
    {"secret-memory", secret_memory, right},
    {"no-local-write", no_local_write, right},
    {"wrong-rkey", wrong_rkey, right},
    {"own-rkey", own_rkey, right},
    {"second-lkey", second_key, right},
    {"out-of-bounds", out_of_bounds, right},
    {"cut-address", cut_address, right},
    {"swapped-address", swapped_address, right},
    {"no-remote-read", no_remote_read, no_remote_read},
    {"no-qp-access", no_qp_access, no_qp_access},
    {"small-cq", small_cq, small_cq},
    {"psn-behind", right, psn_behind},
    {"psn-ahead", right, psn_ahead},
    {"psn-ahead-of-both", psn_ahead_of_both, psn_ahead_of_both},
    {"own-qpn", own_qpn, right},
    {"never-rtr", right, never_rtr},
    {"destroyed", right, destroyed},
    {"other-directory", right, other_directory},
    {"killed-peer", killed_peer, right},
    {"killed-before", killed_before, right},
    {"stopped-late", stopped_late, never_rtr},
    {"reset-while-asked", reset_while_asked, never_rtr},
    {"mtu", small_mtu, large_mtu},
};

/* The call failed as the mistake has it: that is all that this process shows. */
static void end_with(const char *call, int error)
{
    printf("%s from %s\n", error == EINVAL ? "EINVAL" : strerror(error), call);
    fflush(stdout);
    _exit(0);
}

static void say_that_it_waits(int signal)
{
    static const char text[] = "ibv_destroy_cq waits\n";
    _exit(write(STDOUT_FILENO, text, sizeof text - 1) < 0);
}

/* The event of a receive that is flushed. */
static void destroy_unacknowledged(struct endpoint *endpoint, unsigned acknowledgements)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(endpoint->context);
    struct ibv_cq *cq = ibv_create_cq(endpoint->context, 1, NULL, channel, 0), *of;
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(endpoint->pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    void *context;
    if (ibv_req_notify_cq(cq, 0) ||
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
        ibv_post_recv(qp, &wr, &bad))
        end_with("ibv_post_recv", errno);
    attr.qp_state = IBV_QPS_ERR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) || ibv_get_cq_event(channel, &of, &context) || ibv_destroy_qp(qp))
        end_with("ibv_get_cq_event", errno);
    if (acknowledgements)
        ibv_ack_cq_events(cq, acknowledgements);
    signal(SIGALRM, say_that_it_waits);
    alarm(5); /* the library says after one second that it waits */
    ibv_destroy_cq(cq);
}

/* Which its program reaches and the kernel does not copy. */
static char *make_secret(void)
{
    enum { SYS_MEMFD_SECRET = 447 };
    int fd = (int)syscall(SYS_MEMFD_SECRET, 0);
    char *memory =
        fd < 0 || ftruncate(fd, SIZE) ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        end_with("memfd_secret", errno);
    return memory;
}

static void meet_elsewhere(void)
{
    char directory[128];
    snprintf(directory, sizeof directory, "%s-2", getenv("SOFTVERBS_DIR"));
    setenv("SOFTVERBS_DIR", directory, 1);
}

static void enter_init(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)side->qp_access};
    int error = ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error)
        end_with("ibv_modify_qp", error);
}

static void make(struct side *side, char *memory)
{
    if (side->secret)
        memory = make_secret();
    if (side->host) {
        setenv("SOFTVERBS_NET", "eth0", 1);
        endpoint_go_to(side->host);
    }
    if (side->elsewhere)
        meet_elsewhere();
    endpoint_open(&side->endpoint, side->completions);
    side->mr = side->iova ? ibv_reg_mr_iova(side->endpoint.pd, memory, SIZE, side->iova, side->access)
                          : ibv_reg_mr(side->endpoint.pd, memory, SIZE, side->access);
    if (!side->mr)
        end_with("ibv_reg_mr", errno);
    struct ibv_qp_init_attr init = {.send_cq = side->endpoint.cq, .recv_cq = side->endpoint.cq, .qp_type = IBV_QPT_RC};
    init.cap = (struct ibv_qp_cap){.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 1};
    if (side->acknowledges_wrongly)
        destroy_unacknowledged(&side->endpoint, side->acknowledgements);
    if (side->two_contexts)
        init.send_cq = ibv_create_cq(ibv_open_device(side->endpoint.context->device), 1, NULL, NULL, 0);
    side->qp = ibv_create_qp(side->endpoint.pd, &init);
    if (!side->qp)
        end_with("ibv_create_qp", errno);
    enter_init(side);
}

static void connect_to_peer(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = side->mtu,
                               .dest_qp_num = side->own_qpn ? side->qp->qp_num : side->theirs.qp_num,
                               .rq_psn = side->rq_psn,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 1,
                               .ah_attr = side->path};
    attr.ah_attr.grh.dgid = side->theirs.gid;
    int error = ibv_modify_qp(side->qp, &attr, side->rtr_mask);
    if (error && !side->careless)
        end_with("ibv_modify_qp", error);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = PSN,
                                .timeout = side->timeout,
                                .retry_cnt = 2,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    error = ibv_modify_qp(side->qp, &attr,
                          IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_MAX_QP_RD_ATOMIC);
    if (error && !side->careless)
        end_with("ibv_modify_qp", error);
}

static void post_receives(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->mr->addr, SIZE, side->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    for (unsigned i = 0; i < side->receives; i++)
        if (ibv_post_recv(side->qp, &wr, &bad))
            end_with("ibv_post_recv", errno);
}

static uint64_t named_address(const struct side *side)
{
    uint64_t address = side->theirs.memory + side->offset;
    if (side->address == CUT)
        return (uint32_t)address;
    return side->address == SWAPPED ? __builtin_bswap64(address) : address;
}

static void post_work(struct side *side)
{
    struct ibv_sge sges[] = {{(uintptr_t)side->mr->addr, 0, 0},
                             {(uintptr_t)side->mr->addr, side->length, side->mr->lkey + side->second_key}};
    struct ibv_send_wr wr = {.wr_id = 42,
                             .sg_list = side->second_key ? sges : sges + 1,
                             .num_sge = side->second_key ? 2 : 1,
                             .opcode = side->opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = named_address(side),
                                         .rkey = side->own_rkey ? side->mr->rkey : side->theirs.rkey}},
                       *bad;
    for (int i = 0; i < side->sends; i++)
        if (ibv_post_send(side->qp, &wr, &bad))
            end_with("ibv_post_send", errno);
}

static void swap(int fd, const void *mine, void *theirs, size_t size)
{
    if (send(fd, mine, size, MSG_NOSIGNAL) != (ssize_t)size || recv(fd, theirs, size, MSG_WAITALL) != (ssize_t)size)
        _exit(0); /* the other has ended with its mistake */
}

static void show_end(struct side *side)
{
    struct ibv_wc wc;
    if (endpoint_wait(&side->endpoint, &wc, 1, 1))
        printf("%s, vendor_err %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
    else
        printf("nothing\n");
    fflush(stdout);
}

static void live(struct side *side, int fd)
{
    static char memory[SIZE];
    make(side, memory);
    struct address mine = endpoint_address(&side->endpoint, side->qp, side->mr);
    swap(fd, &mine, &side->theirs, sizeof mine);
}

static void end_process(pid_t other)
{
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void stop_late(pid_t other)
{
    usleep(165000); /* the last retry is 135 ms after the first try, its time-out is at 202 ms */
    kill(other, SIGSTOP);
}

/* The last time-out has passed, and the stopped peer is being asked, until 302 ms: the queue pair begins anew,
 * connected with one that there is not. */
static void begin_anew(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    usleep(80000); /* the last time-out has passed */
    int error = ibv_modify_qp(side->qp, &attr, IBV_QP_STATE);
    if (error)
        end_with("ibv_modify_qp", error);
    enter_init(side);
    side->theirs.qp_num = 0xabcdef;
    side->timeout = 8;
    connect_to_peer(side);
    post_work(side);
}

static void play(const struct mistake *mistake, struct side *side, int fd, pid_t other)
{
    char sign = 0;
    mistake->first(side); /* before the objects are made, and again when the other's address is known */
    live(side, fd);
    mistake->first(side);
    if (side->kills_early)
        end_process(other);
    connect_to_peer(side);
    if (!side->kills_early)
        swap(fd, &sign, &sign, 1);
    if (side->kills) {
        post_work(side);
        show_end(side);
        end_process(other);
    }
    post_work(side);
    if (side->stops)
        stop_late(other);
    if (side->resets)
        begin_anew(side);
    show_end(side);
    if (side->stops)
        kill(other, SIGCONT);
    if (side->sends_too)
        swap(fd, &sign, &sign, 1); /* the other has heard of this queue pair */
    if (side->sends > 1)
        usleep(200000); /* the others are refused, too */
    if (getenv("MISTAKES_THEN") && system(getenv("MISTAKES_THEN")))
        die("what was to be run in the end fails");
    ibv_destroy_qp(side->qp); /* before the other side ends: its end would be reported, too */
}

static void await(const struct mistake *mistake, struct side *side, int fd)
{
    char sign = 0;
    mistake->second(side);
    live(side, fd);
    if (side->end == CONNECTS)
        connect_to_peer(side);
    if (side->end == DESTROYS)
        ibv_destroy_qp(side->qp);
    else
        post_receives(side);
    swap(fd, &sign, &sign, 1);
    if (side->sends_too) {
        post_work(side);
        show_end(side);
        swap(fd, &sign, &sign, 1);
    }
    while (recv(fd, &sign, 1, 0) > 0)
        ;
    exit(0);
}

static struct side make_side(void)
{
    const char *index = getenv("ENDPOINT_GID");
    return (struct side){.path = {.is_global = 1,
                                  .port_num = 1,
                                  .grh = {.hop_limit = 64, .sgid_index = (uint8_t)(index ? atoi(index) : 0)}},
                         .access = ENDPOINT_ACCESS,
                         .qp_access = ENDPOINT_ACCESS,
                         .rtr_mask = RTR_MASK,
                         .completions = 32,
                         .sends = 1,
                         .receives = 1,
                         .rq_psn = PSN,
                         .opcode = IBV_WR_SEND,
                         .mtu = IBV_MTU_1024,
                         .timeout = 8,
                         .length = 64};
}

static const struct mistake *find(const char *name)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (!strcmp(mistakes[i].name, name))
            return &mistakes[i];
    die("there is no mistake \"%s\"", name);
}

int main(int argc, char **argv)
{
    int fds[2];
    struct side side = make_side();
    const struct mistake *mistake = find(argc > 1 ? argv[1] : "");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        die("no pair of sockets");
    pid_t other = fork();
    close(fds[other != 0]);
    if (other == 0)
        await(mistake, &side, fds[1]);
    play(mistake, &side, fds[0], other);
    close(fds[0]);
    waitpid(other, NULL, 0);
    return 0;
}
