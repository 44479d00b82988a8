/* A first RC program, as a student writes it after the manual, with one mistake: newcomer MISTAKE. A server and a
 * client exchange their addresses and keys, go to RTS, send a message each; then the client reads and writes the
 * server's memory. Each choice is a number of the side's plan, and a mistake is another number in the plan of one of
 * them. The first line says which process is which; newcomer_test.py reads the rest of the screen. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4096, REMOTE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, LOCAL = IBV_ACCESS_LOCAL_WRITE };
enum { YES = 1, FIRST = 0x5a0000 };

/* The choices of a side. `forgets`: bits that no attr_mask has. A member whose name begins with add_ is added to the
 * right number. */
struct plan {
    long access, other_pd, null_memory;                                          /* ibv_reg_mr */
    long cq_entries, channel, arms, acknowledges;                                /* of completions */
    long qp_type, send_wr, send_sge, inline_data, no_send_cq, signals;           /* ibv_create_qp */
    long query_port, query_gid;                                                  /* what is asked of the device */
    long forgets, port, pkey, qp_access;                                         /* INIT */
    long skips_rtr, path_mtu, swaps_qpn, own_qpn, add_qpn, add_psn, reads_taken; /* RTR */
    long path_port, global, gid_index, zero_gid, add_gid;                        /* its address vector */
    long timeout, rnr_retry, reads, stays_in_init;                               /* RTS */
    long early_receive, early_send, late_send, receives, receive_length, add_lkey_receive, receive_elements;
    long send_length, lkey, swaps_lkey, outside, send_elements, flags, opcode;               /* work requests */
    long own_rkey, add_rkey, swaps_rkey, swaps_address, add_address;                         /* of the peer's memory */
    long waits, posts, sends, sleeps, unmaps_receive, unmaps_send, unmaps_read, deregisters; /* meanwhile */
    long dealloc_pd_first, destroy_cq_first, dereg_twice, directory;                         /* at the ends */
};

static const struct plan usual = {
    .access = LOCAL | REMOTE,
    .cq_entries = 64,
    .arms = YES,
    .acknowledges = YES,
    .qp_type = IBV_QPT_RC,
    .send_wr = 8,
    .send_sge = 1,
    .signals = YES,
    .query_port = 1,
    .port = 1,
    .qp_access = LOCAL | REMOTE,
    .path_mtu = IBV_MTU_1024,
    .reads_taken = 1,
    .path_port = 1,
    .global = YES,
    .timeout = 14,
    .rnr_retry = 7,
    .reads = 1,
    .receives = 2,
    .receive_length = SIZE,
    .receive_elements = 1,
    .send_length = 64,
    .lkey = -1,
    .send_elements = 1,
    .opcode = IBV_WR_SEND,
    .waits = 12000,
    .posts = 1,
    .sends = 1,
};

enum side { SERVER, CLIENT };

#define AT(member) offsetof(struct plan, member)
static const struct mistake {
    const char *name;
    enum side side;
    size_t at;
    long value;
} mistakes[] = {
    {"none", CLIENT, AT(port), 1},
    /* 1 */
    {"mr-zero", SERVER, AT(access), 0},
    {"mr-no-local-write", SERVER, AT(access), IBV_ACCESS_REMOTE_WRITE},
    {"mr-no-remote-read", SERVER, AT(access), LOCAL | IBV_ACCESS_REMOTE_WRITE},
    {"mr-no-remote-write", SERVER, AT(access), LOCAL | IBV_ACCESS_REMOTE_READ},
    {"qp-access-0", SERVER, AT(qp_access), 0},
    /* 2, 14 */
    {"no-receive", SERVER, AT(receives), 0},
    {"no-receive-rnr-3", SERVER, AT(receives), 0},
    {"no-receive-rnr-0", SERVER, AT(receives), 0},
    /* 3 */
    {"forgot-state", CLIENT, AT(forgets), IBV_QP_STATE},
    {"forgot-pkey", CLIENT, AT(forgets), IBV_QP_PKEY_INDEX},
    {"forgot-port", CLIENT, AT(forgets), IBV_QP_PORT},
    {"forgot-access", CLIENT, AT(forgets), IBV_QP_ACCESS_FLAGS},
    {"forgot-av", CLIENT, AT(forgets), IBV_QP_AV},
    {"forgot-mtu", CLIENT, AT(forgets), IBV_QP_PATH_MTU},
    {"forgot-qpn", CLIENT, AT(forgets), IBV_QP_DEST_QPN},
    {"forgot-rq-psn", CLIENT, AT(forgets), IBV_QP_RQ_PSN},
    {"forgot-reads-taken", CLIENT, AT(forgets), IBV_QP_MAX_DEST_RD_ATOMIC},
    {"forgot-rnr-timer", CLIENT, AT(forgets), IBV_QP_MIN_RNR_TIMER},
    {"forgot-timeout", CLIENT, AT(forgets), IBV_QP_TIMEOUT},
    {"forgot-retries", CLIENT, AT(forgets), IBV_QP_RETRY_CNT},
    {"forgot-rnr-retry", CLIENT, AT(forgets), IBV_QP_RNR_RETRY},
    {"forgot-sq-psn", CLIENT, AT(forgets), IBV_QP_SQ_PSN},
    {"forgot-reads", CLIENT, AT(forgets), IBV_QP_MAX_QP_RD_ATOMIC},
    {"reads-taken-0", SERVER, AT(reads_taken), 0},
    {"reads-0", CLIENT, AT(reads), 0},
    /* 4 */
    {"psn", SERVER, AT(add_psn), 100},
    {"psn-timeout-0", SERVER, AT(add_psn), 100},
    {"psn-given-up", SERVER, AT(add_psn), 100},
    /* 5 */
    {"gid-index", CLIENT, AT(gid_index), 7},
    {"gid-index-255", CLIENT, AT(gid_index), 255},
    {"query-gid", CLIENT, AT(query_gid), 77},
    /* 6 */
    {"rkey-own", CLIENT, AT(own_rkey), YES},
    {"rkey-other", CLIENT, AT(add_rkey), 1},
    {"rkey-swapped", CLIENT, AT(swaps_rkey), YES},
    {"address-swapped", CLIENT, AT(swaps_address), YES},
    {"address-behind", CLIENT, AT(add_address), 2 * SIZE - 8},
    /* 7 */
    {"receive-short", SERVER, AT(receive_length), 16},
    /* 8 */
    {"cq-small", SERVER, AT(cq_entries), 1},
    /* 9 */
    {"no-poll", CLIENT, AT(posts), 100},
    /* 10 */
    {"unsignalled", CLIENT, AT(signals), 0},
    {"unsignalled-given-up", CLIENT, AT(signals), 0},
    /* 11 */
    {"inline", CLIENT, AT(flags), IBV_SEND_INLINE},
    /* 12 */
    {"send-in-init", CLIENT, AT(early_send), YES},
    {"send-in-rtr", CLIENT, AT(late_send), YES},
    {"receive-in-reset", CLIENT, AT(early_receive), YES},
    {"skip-rtr", CLIENT, AT(skips_rtr), YES},
    {"never-rtr", SERVER, AT(stays_in_init), YES},
    /* 13 */
    {"mtu-0", CLIENT, AT(path_mtu), 0},
    {"mtu-bytes", CLIENT, AT(path_mtu), 1024},
    /* 15 */
    {"unmapped-receive", SERVER, AT(unmaps_receive), YES},
    {"unmapped-send", CLIENT, AT(unmaps_send), YES},
    {"unmapped-read", SERVER, AT(unmaps_read), YES},
    {"deregistered", SERVER, AT(deregisters), YES},
    /* 16 */
    {"lid", CLIENT, AT(global), 0},
    /* 18 */
    {"port-0", CLIENT, AT(port), 0},
    {"port-2", CLIENT, AT(port), 2},
    {"path-port-0", CLIENT, AT(path_port), 0},
    {"path-port-2", CLIENT, AT(path_port), 2},
    {"query-port", CLIENT, AT(query_port), 2},
    /* 19 */
    {"two-pds", CLIENT, AT(other_pd), YES},
    /* 20 */
    {"unregistered", CLIENT, AT(outside), YES},
    {"lkey-0", CLIENT, AT(lkey), 0},
    {"lkey-swapped", CLIENT, AT(swaps_lkey), YES},
    {"element-behind", CLIENT, AT(send_length), 3 * SIZE},
    {"receive-lkey", SERVER, AT(add_lkey_receive), 64},
    /* the rows below the twenty */
    {"qpn-swapped", CLIENT, AT(swaps_qpn), YES},
    {"qpn-own", CLIENT, AT(own_qpn), YES},
    {"qpn-timeout-0", CLIENT, AT(add_qpn), 77},
    {"other-directory", SERVER, AT(directory), YES},
    {"not-armed", SERVER, AT(arms), 0},
    {"gid-zero", CLIENT, AT(zero_gid), YES},
    {"gid-of-nobody", CLIENT, AT(add_gid), 0x55},
    {"no-acknowledgement", SERVER, AT(acknowledges), 0},
    {"pd-first", CLIENT, AT(dealloc_pd_first), YES},
    {"cq-first", CLIENT, AT(destroy_cq_first), YES},
    {"deregistered-twice", CLIENT, AT(dereg_twice), YES},
    {"elements-2", CLIENT, AT(send_elements), 2},
    {"receive-elements-2", SERVER, AT(receive_elements), 2},
    {"cap-0", CLIENT, AT(send_sge), 0},
    {"cap-large", CLIENT, AT(send_wr), 1000000},
    {"inline-large", CLIENT, AT(inline_data), 1 << 20},
    {"cq-0", CLIENT, AT(cq_entries), 0},
    {"cq-large", CLIENT, AT(cq_entries), 100000000},
    {"no-cq", CLIENT, AT(no_send_cq), YES},
    {"type-0", CLIENT, AT(qp_type), 0},
    {"pkey", CLIENT, AT(pkey), 5},
    {"memory-null", CLIENT, AT(null_memory), YES},
    {"opcode", CLIENT, AT(opcode), 99},
};

/* The data that a side sends the other, in network order. */
struct about {
    uint64_t address;
    uint32_t rkey, qpn, psn;
    union ibv_gid gid;
};

static struct plan plan;
static struct about mine, theirs;
static int peer; /* a socket */
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static char *memory;

/* Ends as such a program does: the number, and away. */
static void check(int fails, const char *call)
{
    if (!fails)
        return;
    fprintf(stderr, "%s: error %d\n", call, fails > 0 ? fails : errno);
    exit(1);
}

static void meet(const void *one, void *other, size_t size)
{
    if (send(peer, one, size, MSG_NOSIGNAL) != (ssize_t)size || recv(peer, other, size, MSG_WAITALL) != (ssize_t)size)
        exit(1); /* it has ended with its mistake */
}

static void meet_again(void)
{
    char sign = 0;
    meet(&sign, &sign, 1);
}

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;
    context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    check(context ? 0 : -1, "ibv_open_device");
    check(ibv_query_port(context, (uint8_t)plan.query_port, &port), "ibv_query_port");
    check(ibv_query_gid(context, 1, (int)plan.query_gid, &mine.gid), "ibv_query_gid");
    pd = ibv_alloc_pd(context);
    channel = plan.channel ? ibv_create_comp_channel(context) : NULL;
    cq = ibv_create_cq(context, (int)plan.cq_entries, NULL, channel, 0);
    check(cq ? 0 : -1, "ibv_create_cq");
    if (channel && plan.arms)
        check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
    memory = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mr = ibv_reg_mr(plan.other_pd ? ibv_alloc_pd(context) : pd, plan.null_memory ? NULL : memory, 2 * SIZE,
                    (int)plan.access);
    check(mr ? 0 : -1, "ibv_reg_mr");
}

static void make_qp(void)
{
    struct ibv_qp_init_attr init = {.send_cq = plan.no_send_cq ? NULL : cq,
                                    .recv_cq = cq,
                                    .qp_type = (enum ibv_qp_type)plan.qp_type,
                                    .sq_sig_all = (int)plan.signals};
    init.cap = (struct ibv_qp_cap){.max_send_wr = (uint32_t)plan.send_wr,
                                   .max_recv_wr = 8,
                                   .max_send_sge = (uint32_t)plan.send_sge,
                                   .max_recv_sge = 1,
                                   .max_inline_data = (uint32_t)plan.inline_data};
    qp = ibv_create_qp(pd, &init);
    check(qp ? 0 : -1, "ibv_create_qp");
    mine.address = (uintptr_t)memory;
    mine.rkey = htonl(mr->rkey);
    mine.qpn = htonl(qp->qp_num);
    mine.psn = htonl(FIRST + (unsigned)getpid() % 1000);
}

static void modify(struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
    attr->qp_state = state;
    check(ibv_modify_qp(qp, attr, (mask | IBV_QP_STATE) & ~(int)plan.forgets), "ibv_modify_qp");
}

static void to_init(void)
{
    struct ibv_qp_attr attr = {
        .port_num = (uint8_t)plan.port, .pkey_index = (uint16_t)plan.pkey, .qp_access_flags = (unsigned)plan.qp_access};
    modify(&attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static uint32_t number_of_peer(void)
{
    return (uint32_t)plan.add_qpn ^ (plan.own_qpn ? qp->qp_num : plan.swaps_qpn ? theirs.qpn : ntohl(theirs.qpn));
}

static void to_rtr(void)
{
    struct ibv_qp_attr attr = {.path_mtu = (enum ibv_mtu)plan.path_mtu,
                               .dest_qp_num = number_of_peer(),
                               .rq_psn = ntohl(theirs.psn) + (uint32_t)plan.add_psn,
                               .max_dest_rd_atomic = (uint8_t)plan.reads_taken,
                               .min_rnr_timer = 12};
    attr.ah_attr.port_num = (uint8_t)plan.path_port;
    attr.ah_attr.is_global = (uint8_t)plan.global;
    attr.ah_attr.grh.sgid_index = (uint8_t)plan.gid_index;
    attr.ah_attr.grh.hop_limit = 1;
    if (!plan.zero_gid)
        attr.ah_attr.grh.dgid = theirs.gid;
    attr.ah_attr.grh.dgid.raw[15] ^= (uint8_t)plan.add_gid;
    modify(&attr, IBV_QPS_RTR,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER);
}

static void to_rts(void)
{
    struct ibv_qp_attr attr = {.timeout = (uint8_t)plan.timeout,
                               .retry_cnt = 4,
                               .rnr_retry = (uint8_t)plan.rnr_retry,
                               .sq_psn = ntohl(mine.psn),
                               .max_rd_atomic = (uint8_t)plan.reads};
    modify(&attr, IBV_QPS_RTS,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void post_receive(void)
{
    struct ibv_sge sge[2] = {
        {(uintptr_t)memory + SIZE, (uint32_t)plan.receive_length, mr->lkey + (uint32_t)plan.add_lkey_receive}};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = (int)plan.receive_elements}, *bad;
    if (ibv_post_recv(qp, &wr, &bad))
        fprintf(stderr, "ibv_post_recv fails\n");
}

static int post_send(long opcode)
{
    static char never_registered[SIZE];
    struct ibv_sge sge[2] = {{(uintptr_t)memory, (uint32_t)plan.send_length, plan.lkey < 0 ? mr->lkey : 0}};
    if (plan.swaps_lkey)
        sge[0].lkey = ntohl(mr->lkey);
    if (plan.outside)
        sge[0].addr = (uintptr_t)never_registered;
    struct ibv_send_wr wr = {.wr_id = 2, .sg_list = sge, .num_sge = (int)plan.send_elements}, *bad;
    wr.opcode = (enum ibv_wr_opcode)opcode;
    wr.send_flags = (unsigned)plan.flags;
    wr.wr.rdma.rkey = plan.own_rkey ? mr->rkey : (plan.swaps_rkey ? theirs.rkey : ntohl(theirs.rkey));
    wr.wr.rdma.rkey += (uint32_t)plan.add_rkey;
    wr.wr.rdma.remote_addr = theirs.address + (uint64_t)plan.add_address;
    if (plan.swaps_address)
        wr.wr.rdma.remote_addr = __builtin_bswap64(theirs.address);
    int error = ibv_post_send(qp, &wr, &bad);
    if (error)
        fprintf(stderr, "ibv_post_send fails\n");
    return error;
}

/* The wait after which a user looks at the screen. */
static void give_up(void)
{
    fprintf(stderr, "nothing comes\n");
    exit(1);
}

static int peer_has_ended(void)
{
    char sign;
    return recv(peer, &sign, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void wait_for_event(void)
{
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *of;
    void *ignored;
    if (poll(&ready, 1, 12000) <= 0)
        give_up();
    check(ibv_get_cq_event(channel, &of, &ignored), "ibv_get_cq_event");
    if (plan.acknowledges)
        ibv_ack_cq_events(of, 1);
    check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
}

static void wait_for(enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = {0};
    int found = 0;
    for (int i = 0; !found && i < plan.waits; i++) {
        found = ibv_poll_cq(cq, 1, &wc);
        if (!found && channel)
            wait_for_event();
        else if (!found)
            usleep(1000);
        if (i < plan.waits - 2000 && peer_has_ended())
            i = (int)plan.waits - 2000;
    }
    if (found < 0)
        check(-1, "ibv_poll_cq");
    if (!found)
        give_up();
    if (wc.status == IBV_WC_SUCCESS && wc.opcode != opcode)
        return wait_for(opcode);
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "status %d, vendor_err %u\n", wc.status, wc.vendor_err);
        exit(1);
    }
}

static void connect_to_peer(void)
{
    to_init();
    if (plan.early_send)
        exit(post_send(IBV_WR_SEND));
    for (long i = 0; i < plan.receives; i++)
        post_receive();
    if (plan.unmaps_receive)
        munmap(memory + SIZE, SIZE);
    if (plan.deregisters)
        ibv_dereg_mr(mr);
    if (!plan.skips_rtr && !plan.stays_in_init)
        to_rtr();
    if (plan.late_send)
        exit(post_send(IBV_WR_SEND));
    if (!plan.stays_in_init)
        to_rts();
}

/* The message of the client is first. */
static void send_and_receive(enum side side)
{
    if (plan.sleeps)
        usleep(300000); /* the mistake */
    if (side == SERVER)
        wait_for(IBV_WC_RECV);
    int refused = 0;
    for (long i = 0; i < plan.posts; i++)
        refused |= post_send(i < plan.sends ? plan.opcode : IBV_WR_RDMA_WRITE);
    if (plan.unmaps_send)
        munmap(memory, SIZE);
    if (refused)
        exit(1);
    wait_for(IBV_WC_SEND);
    if (side == CLIENT)
        wait_for(IBV_WC_RECV);
}

static void read_and_write(void)
{
    check(post_send(IBV_WR_RDMA_READ), "READ");
    wait_for(IBV_WC_RDMA_READ);
    check(post_send(IBV_WR_RDMA_WRITE), "WRITE");
    wait_for(IBV_WC_RDMA_WRITE);
}

static void destroy_objects(void)
{
    if (plan.dealloc_pd_first)
        check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    if (plan.destroy_cq_first)
        check(ibv_destroy_cq(cq), "ibv_destroy_cq");
    check(ibv_destroy_qp(qp), "ibv_destroy_qp");
    check(ibv_dereg_mr(mr), "ibv_dereg_mr");
    if (plan.dereg_twice)
        check(ibv_dereg_mr(mr), "ibv_dereg_mr");
    if (channel && !plan.acknowledges)
        alarm(30); /* the library says after one second that it waits, and the test ends this then */
    check(ibv_destroy_cq(cq), "ibv_destroy_cq");
    check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    check(ibv_close_device(context), "ibv_close_device");
}

static void meet_elsewhere(void)
{
    char directory[128];
    snprintf(directory, sizeof directory, "%s-2", getenv("SOFTVERBS_DIR"));
    setenv("SOFTVERBS_DIR", directory, 1);
}

static void play(enum side side)
{
    if (plan.directory)
        meet_elsewhere();
    make_objects();
    make_qp();
    if (plan.early_receive) {
        post_receive();
        exit(1);
    }
    meet(&mine, &theirs, sizeof mine);
    connect_to_peer();
    meet_again();
    send_and_receive(side);
    if (plan.unmaps_read)
        munmap(memory, SIZE);
    meet_again();
    if (side == CLIENT)
        read_and_write();
    meet_again();
    destroy_objects();
}

/* The part that the row alone does not have: both sides must agree on it, or the other side shows the mistake. */
static void complete(const char *name, enum side side)
{
    if (!strcmp(name, "no-receive-rnr-3"))
        plan.rnr_retry = 3;
    if (!strcmp(name, "no-receive-rnr-0"))
        plan.rnr_retry = 0;
    if (strstr(name, "-timeout-0") || !strcmp(name, "psn-given-up"))
        plan.timeout = 0;
    if (strstr(name, "-timeout-0"))
        plan.waits = 60000; /* until both lines are there */
    if (strstr(name, "-given-up"))
        plan.waits = 2000; /* as textbooks do */
    if (!strcmp(name, "not-armed") || !strcmp(name, "no-acknowledgement"))
        plan.channel = side == SERVER;
    if (!strcmp(name, "cq-small")) {
        plan.sends = side == CLIENT ? 2 : 1;
        plan.posts = plan.sends;
        plan.sleeps = side == SERVER;
    }
}

/* A shell that continues after the program finds the lines and stories of both sides. Either side exits at its mistake,
 * so neither waits for the other: their ends differ by the time that a busy machine gives each. */
static int wait_for_both(pid_t server)
{
    int status, result = 0;
    pid_t ended;
    while ((ended = wait(&status)) > 0)
        if (ended == server)
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return result;
}

int main(int argc, char **argv)
{
    const struct mistake *mistake = mistakes, *end = mistakes + sizeof mistakes / sizeof *mistakes;
    int ends[2];
    while (mistake < end && strcmp(mistake->name, argc > 1 ? argv[1] : ""))
        mistake++;
    if (mistake == end || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || prctl(PR_SET_CHILD_SUBREAPER, 1))
        return 2;
    pid_t server = fork();
    if (server) {
        close(ends[SERVER]);
        close(ends[CLIENT]);
        return wait_for_both(server);
    }
    pid_t client = fork();
    enum side side = client ? SERVER : CLIENT;
    peer = ends[side];
    close(ends[!side]);
    if (side == SERVER)
        printf("server %d client %d\n", (int)getpid(), (int)client);
    fflush(stdout);
    plan = usual;
    if (mistake->side == side)
        memcpy((char *)&plan + mistake->at, &mistake->value, sizeof mistake->value);
    complete(mistake->name, side);
    play(side);
    printf("%s ends well\n", side == SERVER ? "server" : "client");
    return 0;
}
