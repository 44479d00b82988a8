/* Programs that break no rule, but have calls that are refused. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mistakes.h"

static atomic_bool fetched;

static void *fetch_and_acknowledge(void *cq)
{
    struct ibv_cq *of_event;
    void *context;
    struct ibv_cq *own = cq;
    MUST(!ibv_get_cq_event(own->channel, &of_event, &context));
    atomic_store(&fetched, true);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* the queue is destroyed meanwhile */
    ibv_ack_cq_events(of_event, 1);
    return NULL;
}

/* Nothing here breaks a rule: a CQ has as many entries as the send queue, which is filled until it refuses; lists that
 * the library refuses are not read; another thread acknowledges while the queue is destroyed. */
void do_what_is_allowed(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.entries = LOOPBACK_DEPTH});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *bad, long_list = {.sg_list = &piece, .num_sge = 100000000, .opcode = IBV_WR_SEND};
    struct ibv_recv_wr *bad_receive, no_list = {.sg_list = NULL, .num_sge = 3};
    MUST(ibv_post_send(loopback.qp[0], &long_list, &bad) && ibv_post_recv(loopback.qp[0], &no_list, &bad_receive));
    for (int round = 0; round < 3; round++) {
        int posted = 0;
        while (!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED))
            posted++;
        loopback_poll(&loopback, posted);
    }
    struct ibv_comp_channel *channel = ibv_create_comp_channel(loopback.context);
    struct ibv_cq *cq = ibv_create_cq(loopback.context, 4, NULL, channel, 0);
    struct loopback other = loopback;
    other.cq = cq;
    struct ibv_qp *qp = loopback_make_qp(&other, &(struct loopback_options){0});
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    MUST(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    struct ibv_recv_wr receive = {.wr_id = 1};
    pthread_t thread;
    MUST(!ibv_req_notify_cq(cq, 0) && !pthread_create(&thread, NULL, fetch_and_acknowledge, cq));
    MUST(!ibv_post_recv(qp, &receive, &bad_receive));
    MUST(!ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE)); /* flushes it: an event */
    MUST(!ibv_destroy_qp(qp));
    while (!atomic_load(&fetched))
        usleep(1000);
    MUST(!ibv_destroy_cq(cq));
    MUST(!pthread_join(thread, NULL) && !ibv_destroy_comp_channel(channel));
    loopback_close(&loopback);
}

/* Findings that are made before a call that is then refused. */
void be_too_busy(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_cq *cq;
    void *unused;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, loopback.memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = ibv_alloc_mw(loopback.pd, IBV_MW_TYPE_1);
    MUST(mr && mw);
    struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
    bind.bind_info = (struct ibv_mw_bind_info){.mr = mr, .addr = (uintptr_t)loopback.memory, .length = 64};
    MUST(!ibv_req_notify_cq(loopback.cq, 0) && !ibv_bind_mw(loopback.qp[0], mw, &bind));
    MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused) && ibv_destroy_cq(cq) == EBUSY);
    ibv_ack_cq_events(cq, 1);
    loopback_poll(&loopback, 1);
    struct ibv_sge piece = {(uintptr_t)loopback.memory, 64, mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad) && ibv_dereg_mr(mr) == EBUSY);
    MUST(!ibv_destroy_qp(loopback.qp[0]) && !ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
    loopback.qp[0] = NULL;
    loopback_close(&loopback);
}

/* Sends are under way when the queue is armed, and one more is posted then, which raises the event. */
void post_behind_arming(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_cq *cq;
    void *unused;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused));
    ibv_ack_cq_events(cq, 1);
    loopback_poll(&loopback, 2);
    loopback_close(&loopback);
}

/* Only requests go from the initiator to the target, so the other way need not agree. */
static void make_xrc(const struct loopback *loopback, struct ibv_xrcd *domain, struct ibv_qp *qps[2])
{
    struct ibv_qp_init_attr_ex initiator = {.qp_type = IBV_QPT_XRC_SEND, .send_cq = loopback->cq, .pd = loopback->pd};
    struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV, .xrcd = domain};
    initiator.comp_mask = IBV_QP_INIT_ATTR_PD;
    initiator.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1};
    target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    MUST(qps[0] = ibv_create_qp_ex(loopback->context, &initiator));
    MUST(qps[1] = ibv_create_qp_ex(loopback->context, &target));
}

static void connect_xrc_end(struct ibv_qp *qp, uint32_t peer, bool is_target)
{
    int target = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    int initiator = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer};
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 6;
    attr.rq_psn = is_target ? 5 : 77; /* the initiator expects nothing */
    attr.sq_psn = is_target ? 99 : 5;
    MUST(!ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid));
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            (is_target ? target : 0)));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | (is_target ? 0 : initiator)));
}

void connect_xrc(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_qp *qps[2];
    struct ibv_xrcd_init_attr attr = {.fd = -1, .oflags = O_CREAT};
    loopback_open(&loopback, &(struct loopback_options){0});
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct ibv_xrcd *domain = ibv_open_xrcd(loopback.context, &attr);
    MUST(domain);
    make_xrc(&loopback, domain, qps);
    connect_xrc_end(qps[1], qps[0]->qp_num, true);
    connect_xrc_end(qps[0], qps[1]->qp_num, false);
    MUST(!ibv_destroy_qp(qps[0]) && !ibv_destroy_qp(qps[1]) && !ibv_close_xrcd(domain));
    loopback_close(&loopback);
}

/* The fenced WRITE begins when the READ has ended, and so does what follows it. */
void post_fenced(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr *bad, read = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    read.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    read.wr.rdma.rkey = loopback.mr->rkey;
    MUST(!ibv_post_send(loopback.qp[0], &read, &bad));
    MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED | IBV_SEND_FENCE));
    MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED));
    loopback_poll(&loopback, 2);
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback.qp[0]);
    MUST(!ibv_post_send(loopback.qp[0], &read, &bad));
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    ibv_wr_rdma_write(qp, loopback.mr->rkey, (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback.mr->lkey, (uintptr_t)loopback.memory, 64);
    MUST(!ibv_wr_complete(qp));
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* The element is inside the buffer of another receive, and takes no byte of it. */
void post_empty_element(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge elements[] = {loopback_piece(&loopback, 64, 0), loopback_piece(&loopback, 4096, 64)};
    struct ibv_sge whole = loopback_piece(&loopback, 0, 4096);
    struct ibv_recv_wr *bad, first = {.sg_list = elements, .num_sge = 2}, second = {.sg_list = &whole, .num_sge = 1};
    MUST(!ibv_post_recv(loopback.qp[0], &first, &bad));
    MUST(!ibv_post_recv(loopback.qp[1], &second, &bad));
    loopback_close(&loopback);
}

/* Objects that the program asks for on purpose, to see whether they are there. */
void be_refused_often(enum loopback_variant variant)
{
    enum { UNKNOWN = 777 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    MUST(!ibv_reg_mr(loopback.pd, loopback.memory, 64, 1 << 30));
    MUST(ibv_rereg_mr(loopback.mr, 1 << 20, NULL, NULL, 0, 0));
    MUST(!ibv_open_qp(loopback.context, &(struct ibv_qp_open_attr){0}));
    MUST(!ibv_import_device(-1));
    MUST(!ibv_import_pd(loopback.context, UNKNOWN));
    MUST(!ibv_import_mr(loopback.pd, UNKNOWN));
    MUST(!ibv_import_dm(loopback.context, UNKNOWN));
    loopback_close(&loopback);
}

static sigjmp_buf leave;
static volatile sig_atomic_t handled;

static void handle_fault(int signal)
{
    handled++;
    siglongjmp(leave, 1);
}

/* A run with --check=pages: a program's own handler is for its own faults, the kernel refuses what it finds protected,
 * and work that ends without a completion leaves memory accessible. */
void handle_faults(enum loopback_variant variant)
{
    enum { PAGE = 4096 };
    struct loopback loopback;
    struct ibv_recv_wr *bad, receive = {.wr_id = 5, .num_sge = 1};
    struct sigaction action = {.sa_handler = handle_fault};
    loopback_open(&loopback, &(struct loopback_options){0});
    volatile char *own = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int ways[2];
    MUST(own != MAP_FAILED && !sigaction(SIGSEGV, &action, NULL) && !pipe(ways) && write(ways[1], "xx", 2) == 2);
    usleep(20000); /* the library has not looked for handlers for some milliseconds */
    struct ibv_sge piece = loopback_piece(&loopback, PAGE, PAGE);
    receive.sg_list = &piece;
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED)); /* the library looks for handlers */
    loopback_poll(&loopback, 1);
    MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad));
    MUST(read(ways[0], loopback.memory + PAGE, 1) == -1 && errno == EFAULT);
    if (!sigsetjmp(leave, 1))
        *own = 1;
    MUST(handled == 1);
    MUST(loopback.memory[PAGE] == 1 && handled == 1 && read(ways[0], loopback.memory + PAGE, 1) == 1);
    MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad));
    MUST(!ibv_modify_qp(loopback.qp[1], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    MUST(read(ways[0], loopback.memory + PAGE, 1) == 1);
    loopback_close(&loopback);
}

/* With --check=pages: memory with the buffer of a receive in it is registered again, as a cache of registrations does.
 */
void register_again(enum loopback_variant variant)
{
    enum { PAGE = 4096 };
    struct loopback loopback;
    struct ibv_recv_wr *bad, receive = {.wr_id = 5, .num_sge = 1};
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *page = ibv_reg_mr(loopback.pd, loopback.memory + PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge piece = {(uintptr_t)loopback.memory + PAGE, PAGE, loopback.mr->lkey};
    receive.sg_list = &piece;
    MUST(page && !ibv_post_recv(loopback.qp[1], &receive, &bad));
    struct ibv_mr *all = ibv_reg_mr(loopback.pd, loopback.memory, LOOPBACK_MEMORY, IBV_ACCESS_LOCAL_WRITE),
                  *half = ibv_reg_mr(loopback.pd, loopback.memory + PAGE + PAGE / 2, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE);
    MUST(all && half);
    MUST(!ibv_rereg_mr(page, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
    MUST(!ibv_dereg_mr(all) && !ibv_dereg_mr(half) && !ibv_dereg_mr(page));
    char *gone = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(gone != MAP_FAILED && !ibv_reg_mr(loopback.pd, gone, PAGE, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
    loopback_close(&loopback);
}

/* A run with --check=pages: the program gives the place of a receive's buffer to other memory, which stays as the
 * program has mapped it: the data do not land there, and nothing is opened. */
void map_over_receive(enum loopback_variant variant)
{
    enum { PAGE = 4096, FIXED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
    struct loopback loopback;
    struct ibv_recv_wr *bad, receive = {.wr_id = 5, .num_sge = 1};
    struct ibv_wc wc;
    int ways[2], protection = variant == FAULTY ? PROT_NONE : PROT_READ;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *page = loopback.memory + PAGE;
    struct ibv_sge piece = {(uintptr_t)page, PAGE, loopback.mr->lkey}, from = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr *rest, send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
    receive.sg_list = &piece;
    MUST(!pipe(ways) && write(ways[1], "x", 1) == 1 && !ibv_post_recv(loopback.qp[1], &receive, &bad));
    if (variant == NEIGHBOUR) /* which no table of imported symbols sees */
        MUST((char *)syscall(SYS_mmap, page, PAGE, protection, FIXED, -1, 0) == page);
    else
        MUST(!munmap(page, PAGE) && mmap(page, PAGE, protection, FIXED, -1, 0) == page);
    MUST(!ibv_post_send(loopback.qp[0], &send, &rest));
    while (!ibv_poll_cq(loopback.cq, 1, &wc) || wc.wr_id != 5)
        ;
    MUST(wc.status == IBV_WC_LOC_PROT_ERR);
    MUST(read(ways[0], page, 1) == -1 && errno == EFAULT);
    MUST(mmap(page, PAGE, PROT_READ | PROT_WRITE, FIXED, -1, 0) == page); /* for malloc, whose page it is */
    loopback_close(&loopback);
}

/* The peer WRITEs into the buffer of a receive, after the bytes of its message, and into the buffer of a receive that a
 * WRITE with immediate data completes. */
void let_peers_write(enum loopback_variant variant)
{
    enum { HALF = 32 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *mr =
        ibv_reg_mr(loopback.pd, loopback.memory + 4096, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    MUST(mr);
    struct ibv_sge target = {(uintptr_t)loopback.memory + 4096, 2 * HALF, mr->lkey},
                   piece = loopback_piece(&loopback, 0, HALF);
    struct ibv_recv_wr *bad_receive, receive = {.wr_id = 5, .sg_list = &target, .num_sge = 1};
    struct ibv_send_wr *bad,
        write = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    write.wr.rdma.rkey = mr->rkey;
    write.wr.rdma.remote_addr = target.addr + HALF;
    memset(loopback.memory, 1, HALF);
    MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad_receive) && !ibv_post_send(loopback.qp[0], &write, &bad));
    loopback_poll(&loopback, 1);
    struct ibv_send_wr send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    MUST(!ibv_post_send(loopback.qp[0], &send, &bad));
    loopback_poll(&loopback, 2);
    memset(loopback.memory, 2, HALF);
    write.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad_receive) && !ibv_post_send(loopback.qp[0], &write, &bad));
    loopback_poll(&loopback, 2);
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}
