/* Two processes, and an error of a queue pair between them: stories CAUSE [WR_ID]. It prints the numbers of the
 * client's process and queue pair, then the server's, when the error has happened, and ends with its input. The text of
 * `softverbs why --qp` for each cause is in story_test.py. */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1024, MOST_SECONDS = 40, MOST_BEHIND = 3 };

/* One cause: what the client posts, and in which way one of the ends is not as it must be. */
struct cause {
    const char *name;
    enum ibv_wr_opcode opcode;
    unsigned length, receive;  /* bytes; 0: no receive is posted */
    long offset;               /* from the beginning of the server's region */
    unsigned key, local_key;   /* what is added to the right one */
    unsigned access, flags;    /* what the server's region, and its queue pair, do not allow */
    unsigned receive_key;      /* added to the receive's */
    unsigned reads, rnr_retry; /* max_rd_atomic of the client */
    unsigned reads_there;      /* taken from max_dest_rd_atomic of the server, 1 */
    unsigned psn;              /* sq_psn of the client; the server expects 0 */
    enum ibv_qp_type type;     /* 0: RC */
    bool shared, late;         /* the server has a shared receive queue; posts its receive when it is too late */
    bool third;                /* a third process has the shared receive queue, of XRC */
    bool window;               /* what the client names is a memory window of a half of the region */
    enum { WHOLE, CUT, SWAPPED } address; /* of the memory that the client names */
    bool no_key;                          /* the client names the key 0 */
    bool binds;                           /* the client binds a memory window to a region that allows none */
    bool gone;                            /* the client deregisters its region before it posts */
    bool segments; /* the client's is a raw packet queue pair, which sends IBV_WR_TSO with a strange header */
    /* The steps of the server before the client posts: STRANGE connects its queue pair with another queue pair of the
     * server. */
    enum { RUNS, INIT, DIES, NOBODY, EXITS, FAILS, MOVES, DESTROYS, STRANGE, STOPS, DEREGISTERS, INVALIDATES } server;
    unsigned behind;          /* work requests after the first */
    bool hangs, moves_itself; /* no completion arrives; the program itself enters ERR */
    /* The client waits for an event that never arrives, and why; or the server does, which has never armed. */
    enum {
        POLLS,
        POLLS_LATE,
        NEVER_ARMS,
        ARMS_ONCE,
        ARMS_FOR_SOLICITED,
        HAS_NO_CHANNEL,
        FETCHES_NOTHING,
        POLLS_NOTHING
    } waits;
    bool server_waits;
};

static const struct cause causes[] = {
    {.name = "short-receive", .opcode = IBV_WR_SEND, .length = 512, .receive = 256, .behind = 3},
    {.name = "short-atomic", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 4, .reads = 1},
    {.name = "long-send", .opcode = IBV_WR_SEND, .length = (1u << 31) + 1, .receive = 8},
    {.name = "send-key", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .local_key = 0x100},
    {.name = "send-range", .opcode = IBV_WR_SEND, .length = 2 * ROOM, .receive = 8},
    {.name = "receive-key", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .receive_key = 0x100},
    {.name = "receive-permission", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .access = ~0u},
    {.name = "reads-disabled", .opcode = IBV_WR_RDMA_READ, .length = 8},
    {.name = "remote-range", .opcode = IBV_WR_RDMA_WRITE, .length = 512, .offset = 768, .behind = 3},
    {.name = "remote-key", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .key = 0x100},
    {.name = "remote-gone", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .server = DEREGISTERS},
    {.name = "receive-gone", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .server = DEREGISTERS},
    {.name = "send-gone", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .gone = true},
    {.name = "invalidated", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .window = true, .server = INVALIDATES},
    {.name = "atomic-key", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .reads = 1, .no_key = true},
    {.name = "remote-permission", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .access = IBV_ACCESS_REMOTE_WRITE},
    {.name = "qp-permission", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .flags = IBV_ACCESS_REMOTE_WRITE},
    {.name = "bind", .opcode = IBV_WR_BIND_MW, .length = 8, .binds = true},
    {.name = "cut", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .address = CUT},
    {.name = "swapped", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .address = SWAPPED},
    {.name = "misaligned", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .offset = 4, .reads = 1},
    {.name = "no-receive", .opcode = IBV_WR_SEND, .length = 8, .rnr_retry = 2},
    {.name = "hang", .opcode = IBV_WR_SEND, .length = 8, .rnr_retry = 7, .hangs = true},
    {.name = "deaf", .opcode = IBV_WR_SEND, .length = 8, .server = INIT},
    {.name = "dead", .opcode = IBV_WR_SEND, .length = 8, .server = DIES},
    {.name = "nobody", .opcode = IBV_WR_SEND, .length = 8, .server = NOBODY},
    {.name = "atomics-disabled", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8},
    {.name = "segments", .opcode = IBV_WR_TSO, .length = 200, .segments = true},
    {.name = "reads-refused", .opcode = IBV_WR_RDMA_READ, .length = 8, .reads = 1, .reads_there = 1},
    {.name = "empty-srq", .opcode = IBV_WR_SEND, .length = 8, .rnr_retry = 2, .shared = true},
    {.name = "short-srq", .opcode = IBV_WR_SEND, .length = 300, .receive = 299, .shared = true},
    {.name = "late-receive", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .rnr_retry = 1, .late = true},
    {.name = "window", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .offset = ROOM / 2, .window = true},
    {.name = "first-psn", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .psn = 1000},
    {.name = "peer-failed", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .server = FAILS},
    {.name = "peer-moved", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .server = MOVES},
    {.name = "destroyed", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .server = DESTROYS},
    {.name = "strange", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .server = STRANGE},
    {.name = "exited", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .server = EXITS},
    {.name = "stopped", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .server = STOPS, .hangs = true},
    {.name = "uc-key", .opcode = IBV_WR_RDMA_WRITE, .length = 8, .key = 0x100, .type = IBV_QPT_UC},
    {.name = "uc-receive", .opcode = IBV_WR_SEND, .length = 8, .type = IBV_QPT_UC},
    {.name = "no-grh", .opcode = IBV_WR_SEND, .length = 100, .receive = 139, .type = IBV_QPT_UD},
    {.name = "fine", .opcode = IBV_WR_SEND, .length = 8, .receive = 8},
    {.name = "slow", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = POLLS_LATE},
    {.name = "short-xrc",
     .opcode = IBV_WR_SEND,
     .length = 300,
     .receive = 299,
     .type = IBV_QPT_XRC_SEND,
     .shared = true},
    {.name = "empty-xrc", .opcode = IBV_WR_SEND, .length = 8, .rnr_retry = 2, .type = IBV_QPT_XRC_SEND, .shared = true},
    {.name = "short-third",
     .opcode = IBV_WR_SEND,
     .length = 300,
     .receive = 299,
     .type = IBV_QPT_XRC_SEND,
     .third = true},
    {.name = "empty-third",
     .opcode = IBV_WR_SEND,
     .length = 8,
     .rnr_retry = 2,
     .type = IBV_QPT_XRC_SEND,
     .third = true},
    {.name = "hang-third",
     .opcode = IBV_WR_SEND,
     .length = 8,
     .rnr_retry = 7,
     .hangs = true,
     .type = IBV_QPT_XRC_SEND,
     .third = true},
    {.name = "never-armed", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = NEVER_ARMS},
    {.name = "armed-once", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = ARMS_ONCE},
    {.name = "solicited", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = ARMS_FOR_SOLICITED},
    {.name = "no-channel", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = HAS_NO_CHANNEL},
    {.name = "not-fetched", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = FETCHES_NOTHING},
    {.name = "not-polled", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .waits = POLLS_NOTHING},
    {.name = "server-waits", .opcode = IBV_WR_SEND, .length = 8, .receive = 8, .server_waits = true},
    {.name = "both",
     .opcode = IBV_WR_SEND,
     .length = 8,
     .receive = 8,
     .behind = 1,
     .rnr_retry = 7,
     .hangs = true,
     .server_waits = true},
    {.name = "own-end", .opcode = IBV_WR_SEND, .length = 8, .rnr_retry = 7, .hangs = true, .moves_itself = true},
};

/* The memory that both processes share. */
struct meeting {
    struct end {
        atomic_uint stage;
        unsigned qp, rkey, srq;
        unsigned long memory;
        union ibv_gid gid;
    } ends[2];          /* client, server */
    atomic_bool shared; /* the third process has its shared receive queue */
    atomic_uint polled; /* completions that the server took */
    atomic_bool over;
};

static struct meeting *meeting;
static const struct cause *cause;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static char *memory;
static unsigned long first_id = 7;

static void fail(const char *what)
{
    fprintf(stderr, "stories: %s\n", what);
    exit(2);
}

static void meet(int self, unsigned stage)
{
    atomic_store(&meeting->ends[self].stage, stage);
    for (int i = 0; atomic_load(&meeting->ends[!self].stage) < stage; i++, usleep(1000))
        if (i > MOST_SECONDS * 1000)
            fail("the other end does not come");
}

static void open_device(unsigned access, bool sleeps)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    memory = aligned_alloc(4096, 4096);
    context = list && *list ? ibv_open_device(*list) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    channel = context && sleeps ? ibv_create_comp_channel(context) : NULL;
    cq = pd ? ibv_create_cq(context, 64, NULL, channel, 0) : NULL;
    mr = cq && memory ? ibv_reg_mr(pd, memory, ROOM, (int)access) : NULL;
    if (!mr)
        fail("no objects");
}

static int domain_file = -1; /* of the XRC domain that several processes have; -1: it is one process's */
static struct ibv_xrcd *xrcd;

static void open_domain(void)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = domain_file, .oflags = O_CREAT};
    xrcd = ibv_open_xrcd(context, &domain);
    if (!xrcd)
        fail("no XRC domain");
}

/* One that the messages of XRC name. */
static void make_xrc_srq(void)
{
    open_domain();
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 16, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = cq};
    srq = ibv_create_srq_ex(context, &init);
    if (!srq || ibv_get_srq_num(srq, &meeting->ends[1].srq))
        fail("no shared receive queue of XRC");
}

/* The client's end of XRC sends, and the server's receives. */
static struct ibv_qp *create_xrc_qp(int self)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = self ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND,
                                       .send_cq = self ? NULL : cq,
                                       .cap = {16, 0, 1, 0, 0},
                                       .comp_mask = self ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
                                       .pd = pd,
                                       .xrcd = xrcd};
    return ibv_create_qp_ex(context, &init);
}

static void make_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    srq = ibv_create_srq(pd, &init);
    if (!srq)
        fail("no shared receive queue");
}

static void make_qp(int self, unsigned flags)
{
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .srq = srq,
                                    .qp_type = cause->type ? cause->type : IBV_QPT_RC,
                                    .cap = {16, 16, 1, 1, 0}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = flags};
    struct end *end = &meeting->ends[self];
    qp = cause->type == IBV_QPT_XRC_SEND ? create_xrc_qp(self) : ibv_create_qp(pd, &init);
    int last = cause->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last) ||
        ibv_query_gid(context, 1, 0, &end->gid))
        fail("no queue pair");
    end->qp = qp->qp_num;
    end->rkey = mr->rkey;
    end->memory = (unsigned long)memory;
}

/* One of raw packets, ready to send. */
static void make_raw_qp(void)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .qp_type = IBV_QPT_RAW_PACKET,
                                       .cap = {16, 16, 1, 1, 0},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
                                       .pd = pd,
                                       .max_tso_header = 64};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    qp = ibv_create_qp_ex(context, &init);
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
        fail("no raw queue pair");
    for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
        if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
            fail("not ready to send");
}

static struct ibv_ah *way;

/* One of datagrams is ready, and has a way to the peer. */
static void prepare_datagrams(const struct end *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .hop_limit = 1}};
    way = ibv_create_ah(pd, &to);
    if (!way || ibv_modify_qp(qp, &attr, IBV_QP_STATE) || ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN))
        fail("not ready for datagrams");
}

static void modify(struct ibv_qp_attr *attr, int mask, int mask_of_reliable)
{
    if (ibv_modify_qp(qp, attr, mask | (qp->qp_type == IBV_QPT_UC ? 0 : mask_of_reliable)))
        fail("not connected");
}

static void connect_qp(const struct end *peer, unsigned number)
{
    bool serves = peer == &meeting->ends[0];
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = number,
                               .max_dest_rd_atomic = (uint8_t)(1 - (serves ? cause->reads_there : 0)),
                               .min_rnr_timer = 1,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .hop_limit = 1}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = cause->third ? 18 : 10, /* a third process needs a processor, too, to answer */
                              .retry_cnt = 2,
                              .rnr_retry = (uint8_t)cause->rnr_retry,
                              .sq_psn = serves ? 0 : cause->psn,
                              .max_rd_atomic = (uint8_t)cause->reads};
    if (cause->type == IBV_QPT_UD)
        return prepare_datagrams(peer);
    modify(&attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    modify(&rts, IBV_QP_STATE | IBV_QP_SQ_PSN,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, cause->receive, mr->lkey + cause->receive_key};
    struct ibv_recv_wr *bad, wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
    for (int i = 0; cause->receive && i <= (cause->waits == ARMS_ONCE); i++)
        if (srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad))
            fail("no receive");
}

/* One list, so that work after the failing one is posted before it fails. */
static void post_bind(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.wr_id = first_id,
                               .send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = mr, .addr = (uintptr_t)memory, .length = cause->length}};
    if (!mw || ibv_bind_mw(qp, mw, &bind))
        fail("no bind");
}

static void post_sends(void)
{
    if (cause->binds)
        return post_bind();
    const struct end *peer = &meeting->ends[1];
    struct ibv_sge sge = {(uintptr_t)memory, cause->length, mr->lkey + cause->local_key};
    struct ibv_send_wr wrs[MOST_BEHIND + 1], *bad;
    unsigned long address = peer->memory + (unsigned long)cause->offset;
    if (cause->address)
        address = cause->address == CUT ? (uint32_t)address : __builtin_bswap64(address);
    if (cause->gone && ibv_dereg_mr(mr))
        fail("not deregistered");
    for (unsigned i = 0; i <= cause->behind; i++) {
        wrs[i] = (struct ibv_send_wr){.wr_id = first_id + i,
                                      .next = i < cause->behind ? &wrs[i + 1] : NULL,
                                      .sg_list = &sge,
                                      .num_sge = 1,
                                      .opcode = cause->opcode,
                                      .send_flags = IBV_SEND_SIGNALED};
        wrs[i].qp_type.xrc.remote_srqn = peer->srq;
        if (cause->segments) {
            static char nothing[54]; /* no header of Ethernet, IP and TCP */
            wrs[i].tso.hdr = nothing;
            wrs[i].tso.hdr_sz = sizeof nothing;
            wrs[i].tso.mss = 100;
        } else if (cause->type == IBV_QPT_UD) {
            wrs[i].wr.ud.ah = way;
            wrs[i].wr.ud.remote_qpn = peer->qp;
        } else if (cause->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            wrs[i].wr.atomic.remote_addr = address;
            wrs[i].wr.atomic.rkey = cause->no_key ? 0 : peer->rkey + cause->key;
        } else {
            wrs[i].wr.rdma.remote_addr = address;
            wrs[i].wr.rdma.rkey = peer->rkey + cause->key;
        }
    }
    if (ibv_post_send(qp, wrs, &bad))
        fail("no send");
}

static unsigned succeeded;

static void wait_for_completions(unsigned count)
{
    struct ibv_wc wc;
    for (int i = 0; count; i++, usleep(1000)) {
        if (ibv_poll_cq(cq, 1, &wc) == 1) {
            count--;
            succeeded += wc.status == IBV_WC_SUCCESS;
        }
        if (i > MOST_SECONDS * 1000)
            fail("no completion");
    }
}

static void wait_a_little(void)
{
    usleep(200000); /* the peer says a few times that it is not ready */
    if (!cause->moves_itself)
        return;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        fail("not to ERR");
    wait_for_completions(1);
}

static void arm(void)
{
    if (ibv_req_notify_cq(cq, cause->waits == ARMS_FOR_SOLICITED))
        fail("not armed");
}

static void get_event(void)
{
    struct ibv_cq *which;
    void *user;
    if (ibv_get_cq_event(channel, &which, &user))
        fail("no event");
    ibv_ack_cq_events(which, 1);
}

/* The part until it would wait for the event that never arrives. */
static void post_and_wait(void)
{
    if (cause->waits != NEVER_ARMS && cause->waits != POLLS_LATE)
        arm();
    post_sends();
    if (cause->waits == ARMS_ONCE || cause->waits == POLLS_NOTHING)
        get_event();
    if (cause->waits == POLLS_NOTHING)
        arm();
    if (cause->waits != ARMS_ONCE)
        return;
    wait_for_completions(1);
    post_sends();
}

static void wait_for_third(void)
{
    for (int i = 0; !atomic_load(&meeting->shared); i++, usleep(1000))
        if (i > MOST_SECONDS * 1000)
            fail("the third process does not come");
}

/* A completion that the server has not polled would be another sentence of its story. */
static void wait_until_server_polled(void)
{
    unsigned arrived = cause->waits == POLLS ? succeeded : 1 + (cause->waits == ARMS_ONCE);
    if (!cause->receive || cause->server_waits || (cause->type && cause->type != IBV_QPT_RC))
        return;
    for (int i = 0; atomic_load(&meeting->polled) < arrived; i++, usleep(1000))
        if (i > MOST_SECONDS * 1000)
            fail("the server does not poll");
}

static void run_client(pid_t server)
{
    const struct end *peer = &meeting->ends[1];
    char ignored;
    open_device(IBV_ACCESS_LOCAL_WRITE, cause->waits != POLLS && cause->waits != HAS_NO_CHANNEL);
    make_qp(0, IBV_ACCESS_LOCAL_WRITE);
    meet(0, 1);
    connect_qp(peer, cause->server == NOBODY ? 0xabcdef : peer->qp);
    if (cause->segments)
        make_raw_qp();
    meet(0, 2);
    if (cause->server == DIES)
        kill(server, SIGKILL);
    if (cause->server == DIES || cause->server == EXITS)
        waitpid(server, NULL, 0);
    if (cause->server == STOPS)
        waitpid(server, NULL, WUNTRACED);
    if (cause->third)
        wait_for_third();
    if (cause->waits != POLLS)
        post_and_wait();
    else
        post_sends();
    if (cause->waits == POLLS)
        wait_for_completions(cause->behind + !cause->hangs);
    if (cause->hangs || cause->type == IBV_QPT_UC)
        wait_a_little();
    if (cause->late)
        meet(0, 3);
    wait_until_server_polled();
    printf("%d %u %d %u\n", (int)getpid(), qp->qp_num, (int)server, peer->qp);
    fflush(stdout);
    if (read(0, &ignored, 1) < 0)
        fail("no input");
    if (cause->waits == POLLS_LATE)
        wait_for_completions(1);
    if (cause->hangs && ibv_destroy_qp(qp)) /* before the server ends, which would be an error */
        fail("not destroyed");
    atomic_store(&meeting->over, true);
    if (cause->server == STOPS)
        kill(server, SIGKILL);
}

/* A window of the region's first half, whose key the client then has. */
static void bind_window(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    if (!mw)
        fail("no memory window");
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (unsigned long)memory, ROOM / 2,
                                                     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    if (ibv_post_send(qp, &wr, &bad))
        fail("not bound");
    wait_for_completions(1);
    meeting->ends[1].rkey = wr.bind_mw.rkey;
}

/* A send of memory that is not registered. */
static void fail_itself(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, 16, mr->lkey + 0x100};
    struct ibv_send_wr *bad, wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    if (ibv_post_send(qp, &wr, &bad))
        fail("no send");
    wait_for_completions(1);
}

static void move_itself(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        fail("not to ERR");
}

/* The client's queue pair is connected with another queue pair of the server. */
static void connect_strangely(struct ibv_qp *other)
{
    struct ibv_qp *own = qp;
    connect_qp(&meeting->ends[0], other->qp_num);
    qp = other;
    connect_qp(&meeting->ends[0], own->qp_num);
    qp = own;
}

static void invalidate(void)
{
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
    wr.invalidate_rkey = meeting->ends[1].rkey;
    if (ibv_post_send(qp, &wr, &bad))
        fail("not invalidated");
    wait_for_completions(1);
}

static void stop_itself(void)
{
    atomic_store(&meeting->ends[1].stage, 2);
    raise(SIGSTOP);
}

static void spoil(void)
{
    if (cause->window)
        bind_window();
    if (cause->server == FAILS)
        fail_itself();
    if (cause->server == MOVES)
        move_itself();
    if (cause->server == DESTROYS && ibv_destroy_qp(qp))
        fail("not destroyed");
    if (cause->server == DEREGISTERS && ibv_dereg_mr(mr))
        fail("not deregistered");
    if (cause->server == INVALIDATES)
        invalidate();
    if (cause->server == STOPS)
        stop_itself();
}

static void run_server(void)
{
    const unsigned all =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_wc wc;
    struct ibv_qp *other = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_device((all & ~cause->access) | (cause->window ? IBV_ACCESS_MW_BIND : 0), cause->server_waits);
    if (cause->shared)
        (cause->type == IBV_QPT_XRC_SEND ? make_xrc_srq : make_srq)();
    if (cause->third)
        open_domain();
    if (cause->server == STRANGE) {
        make_qp(1, IBV_ACCESS_LOCAL_WRITE);
        other = qp;
    }
    make_qp(1, all & ~cause->flags);
    meet(1, 1);
    if (cause->server == STRANGE)
        connect_strangely(other);
    else if (cause->server != INIT)
        connect_qp(&meeting->ends[0], meeting->ends[0].qp);
    if (!cause->late && !cause->third)
        post_receive();
    spoil();
    meet(1, 2);
    if (cause->server == EXITS)
        return;
    if (cause->late) {
        while (atomic_load(&meeting->ends[0].stage) < 3)
            usleep(1000);
        post_receive();
        meet(1, 3);
    }
    while (!atomic_load(&meeting->over)) {
        if (!cause->server_waits && ibv_poll_cq(cq, 1, &wc) == 1)
            atomic_fetch_add(&meeting->polled, 1);
        usleep(1000);
    }
}

/* The third process has the shared receive queue, and the server the queue pair. */
static void run_third(void)
{
    struct ibv_wc wc;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_device(IBV_ACCESS_LOCAL_WRITE, false);
    make_xrc_srq();
    post_receive();
    atomic_store(&meeting->shared, true);
    while (!atomic_load(&meeting->over)) {
        ibv_poll_cq(cq, 1, &wc);
        usleep(1000);
    }
}

static pid_t begin(void (*run)(void))
{
    pid_t process = fork();
    if (process < 0)
        fail("no process");
    if (!process) {
        run();
        exit(0);
    }
    return process;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (argc > 1 && !strcmp(argv[1], causes[i].name))
            cause = &causes[i];
    if (argc > 2)
        first_id = strtoul(argv[2], NULL, 0);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!cause || meeting == MAP_FAILED)
        fail("no such cause");
    if (cause->third)
        domain_file = memfd_create("domain", 0);
    pid_t third = cause->third ? begin(run_third) : 0, server = begin(run_server);
    run_client(server);
    waitpid(server, NULL, 0);
    if (third)
        waitpid(third, NULL, 0);
    return 0;
}
