/* Threads, processes, signals, and what the kernel grants them. */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mistakes.h"

struct domain_user {
    struct ibv_qp *qp;
    struct ibv_send_wr *wr;
};

static void *post_beside(void *argument)
{
    struct domain_user *user = argument;
    struct ibv_send_wr *rest;
    MUST(!ibv_post_send(user->qp, user->wr, &rest)); /* thread-domain faulty */
    return NULL;
}

static void *receive_beside(void *argument)
{
    struct domain_user *user = argument;
    struct ibv_recv_wr *rest, receive = {.wr_id = 4};
    MUST(!ibv_post_recv(user->qp, &receive, &rest)); /* thread-domain neighbour */
    return NULL;
}

/* While another thread is between ibv_wr_start and ibv_wr_complete: of one queue pair; of two. The twin's have no
 * thread domain. */
void share_domain(enum loopback_variant variant)
{
    enum { MEANWHILE = 100000 /* us */ };
    struct loopback loopback;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){.domain = variant != TWIN});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    struct domain_user user = {loopback.qp[variant == NEIGHBOUR], &wr};
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback.qp[0]);
    ibv_wr_start(qp);
    MUST(!pthread_create(&thread, NULL, variant == NEIGHBOUR ? receive_beside : post_beside, &user));
    usleep(MEANWHILE); /* the other thread waits within its call */
    ibv_wr_abort(qp);
    MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
}

/* Destroys; posts. The twin's child opens the device itself. */
void use_in_child(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_recv_wr *bad, receive = {.wr_id = 3};
    pid_t child = fork();
    if (child == 0) {
        struct loopback own;
        if (variant == TWIN)
            loopback_open(&own, &(struct loopback_options){0});
        if (variant == TWIN)
            loopback_close(&own);
        if (variant == FAULTY)
            ibv_dereg_mr(loopback.mr); /* used-in-child faulty */
        if (variant == NEIGHBOUR)
            ibv_post_recv(loopback.qp[0], &receive, &bad); /* used-in-child neighbour */
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0) == child);
    loopback_close(&loopback);
}

/* Makes queues; the twin makes them in a context of its own, and a region in its parent's. */
void make_in_child(enum loopback_variant variant)
{
    struct loopback loopback, own;
    loopback_open(&loopback, &(struct loopback_options){0});
    pid_t child = fork();
    if (child == 0) {
        if (variant == TWIN)
            loopback_open(&own, &(struct loopback_options){0});
        struct loopback *used = variant == TWIN ? &own : &loopback;
        struct ibv_qp_init_attr attr = {.send_cq = used->cq, .recv_cq = used->cq, .qp_type = IBV_QPT_RC};
        attr.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
        ibv_reg_mr(loopback.pd, loopback.memory, 8, 0);
        ibv_create_cq(used->context, 1, NULL, NULL, 0);
        ibv_create_qp(used->pd, &attr);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0) == child);
    loopback_close(&loopback);
}

static struct loopback *handled;
static struct ibv_mr *handled_mr;

static void register_in_handler(int signal)
{
    handled_mr = ibv_reg_mr(handled->pd, handled->memory, 8, 0); /* signal-handler faulty */
}

static void deregister_in_handler(int signal)
{
    ibv_dereg_mr(handled_mr); /* signal-handler neighbour */
    handled_mr = NULL;
}

static void do_nothing(int signal)
{
}

void call_in_handler(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    handled = &loopback;
    if (variant != FAULTY)
        MUST(handled_mr = ibv_reg_mr(loopback.pd, loopback.memory, 8, 0));
    signal(SIGUSR1, variant == FAULTY ? register_in_handler : variant == TWIN ? do_nothing : deregister_in_handler);
    raise(SIGUSR1);
    if (handled_mr)
        MUST(!ibv_dereg_mr(handled_mr));
    loopback_close(&loopback);
}

/* Parent and child each leave a PD open. */
void leave_in_both(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    pid_t child = fork();
    if (child == 0) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct ibv_context *context = ibv_open_device(*list);
        MUST(context && ibv_alloc_pd(context) && !ibv_close_device(context));
        exit(0);
    }
    MUST(waitpid(child, NULL, 0) == child);
    MUST(ibv_alloc_pd(loopback.context));
    loopback_close(&loopback);
}

/* Adapters' drivers let those lock all memory that have the capability, as tests may. */
static void give_up_locking(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    MUST(!syscall(SYS_capget, &header, data));
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    MUST(!syscall(SYS_capset, &header, data));
}

/* One region that is larger than the limit; the second of two that are both smaller. */
void lock_too_much(enum loopback_variant variant)
{
    enum { LIMIT = 1 << 20, SMALL = LIMIT / 2 + 4096, LARGE = 2 * LIMIT };
    struct loopback loopback;
    give_up_locking();
    MUST(!setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){LIMIT, LIMIT}));
    loopback_open(&loopback, &(struct loopback_options){0});
    char *memory = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED);
    struct ibv_mr *second = NULL;
    size_t size = variant == FAULTY ? LARGE : SMALL;
    struct ibv_mr *first = ibv_reg_mr(loopback.pd, memory, size, 0); /* memlock-exceeded faulty */
    if (variant == TWIN)
        MUST(!ibv_dereg_mr(first));
    if (variant != FAULTY)
        second = ibv_reg_mr(loopback.pd, memory + LIMIT, SMALL, 0); /* memlock-exceeded neighbour */
    if (second)
        MUST(!ibv_dereg_mr(second));
    if (variant != TWIN)
        MUST(!ibv_dereg_mr(first));
    loopback_close(&loopback);
}

/* A completion queue; a queue pair, with memory that is registered. The twin's is within the limit. */
void lock_queues(enum loopback_variant variant)
{
    enum { LIMIT = 1 << 20, ENTRY = 64 };
    struct loopback loopback;
    struct ibv_cq *cq = NULL;
    give_up_locking();
    MUST(!setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){LIMIT, LIMIT}));
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_qp_init_attr attr = {.send_cq = loopback.cq, .recv_cq = loopback.cq, .qp_type = IBV_QPT_RC};
    attr.cap = (struct ibv_qp_cap){.max_send_wr = LIMIT / ENTRY, .max_send_sge = 1};
    if (variant == NEIGHBOUR)
        MUST(!ibv_destroy_qp(ibv_create_qp(loopback.pd, &attr))); /* locked-queues neighbour */
    if (variant == FAULTY)
        cq = ibv_create_cq(loopback.context, LIMIT / ENTRY, NULL, NULL, 0); /* locked-queues faulty */
    if (variant == TWIN)
        cq = ibv_create_cq(loopback.context, LIMIT / ENTRY / 2, NULL, NULL, 0);
    MUST(variant == NEIGHBOUR || (cq && !ibv_destroy_cq(cq)));
    loopback_close(&loopback);
}

static void *poll_beside(void *argument)
{
    struct loopback *loopback = argument;
    struct ibv_wc wc;
    ibv_poll_cq(loopback->cq, 1, &wc); /* single-threaded faulty */
    return NULL;
}

static void *iterate_beside(void *argument)
{
    struct loopback *loopback = argument;
    if (!ibv_start_poll(loopback->cq_ex, &(struct ibv_poll_cq_attr){0})) /* single-threaded neighbour */
        ibv_end_poll(loopback->cq_ex);
    return NULL;
}

/* While another thread is between ibv_start_poll and ibv_end_poll. */
void poll_in_two_threads(enum loopback_variant variant)
{
    struct loopback loopback;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){.wc_flags = IBV_WC_EX_WITH_QP_NUM,
                                                        .cq_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED});
    if (variant == FAULTY)
        MUST(ibv_destroy_cq(ibv_cq_ex_to_cq(loopback.cq_ex)) == EBUSY); /* it stays what it is */
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    begin_poll(&loopback);
    if (variant == TWIN)
        ibv_end_poll(loopback.cq_ex);
    MUST(!pthread_create(&thread, NULL, variant == NEIGHBOUR ? iterate_beside : poll_beside, &loopback));
    MUST(!pthread_join(thread, NULL));
    if (variant != TWIN)
        ibv_end_poll(loopback.cq_ex);
    loopback_close(&loopback);
}
