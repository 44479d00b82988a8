/* Mistakes of public threads: public NUMBER faulty|twin. The numbers are in docs/evidence/mistakes.md. */
#include "public.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mistakes.h"

enum { VAIN = 400 }; /* milliseconds */

static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void poll_in_vain(struct loopback *loopback)
{
    struct ibv_wc wc;
    for (uint64_t until = milliseconds() + VAIN; milliseconds() < until;)
        ibv_poll_cq(loopback->cq, 1, &wc);
}

/* -- calls that are refused: 5, 6, 16, 17, 22 */

static void deallocate_in_use(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_pd *pd = ibv_alloc_pd(loopback.context);
    struct ibv_mr *mr = ibv_reg_mr(pd, loopback.memory, 64, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    if (variant == TWIN)
        MUST(!ibv_dereg_mr(mr));
    if (ibv_dealloc_pd(pd)) /* 5 */
        fprintf(stderr, "Failed to deallocate the protection domain\n");
    if (variant != TWIN)
        MUST(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
    loopback_close(&loopback);
}

static void destroy_queue_first(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    if (variant == FAULTY)
        ibv_destroy_cq(loopback.cq); /* 6 */
    loopback_close(&loopback);
}

static void ask_for_many_entries(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_device_attr attr;
    loopback_open(&loopback, &(struct loopback_options){0});
    MUST(!ibv_query_device(loopback.context, &attr));
    int entries = variant == TWIN ? attr.max_cqe : 1 << 20;
    struct ibv_cq *cq = ibv_create_cq(loopback.context, entries, NULL, NULL, 0); /* 16 */
    MUST(!cq || !ibv_destroy_cq(cq));
    loopback_close(&loopback);
}

static void leave_sgid_index(enum loopback_variant variant)
{
    struct loopback loopback;
    const struct loopback_options usual = {0}, other = {.target_gid = 1};
    loopback_open(&loopback, &usual);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &usual);
    loopback_connect(&loopback, qp, qp->qp_num, variant == FAULTY ? &other : &usual); /* 17 */
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

static void ask_for_depth(enum loopback_variant variant)
{
    enum { WRITTEN = 16 };
    struct loopback loopback;
    const struct loopback_options plain = {.plain = true, .no_inline = true};
    struct ibv_device_attr device;
    loopback_open(&loopback, &plain);
    MUST(!ibv_query_device(loopback.context, &device));
    struct ibv_qp *qp = loopback_make_qp(&loopback, &plain);
    loopback_listen(&loopback, qp, qp->qp_num, &plain);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6};
    attr.max_rd_atomic = (uint8_t)(variant == TWIN ? device.max_qp_init_rd_atom : WRITTEN);
    ibv_modify_qp(qp, &attr, /* 22 */
                  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_MAX_QP_RD_ATOMIC);
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

/* -- waits: 8, 10, 20 */

static void send_one(struct loopback *loopback)
{
    struct ibv_sge sge = loopback_piece(loopback, 0, 64);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    wr.send_flags = IBV_SEND_SIGNALED;
    MUST(!ibv_post_send(loopback->qp[0], &wr, &bad));
}

static void post_receive(struct loopback *loopback)
{
    struct ibv_sge room = loopback_piece(loopback, LOOPBACK_MEMORY / 2, 64);
    struct ibv_recv_wr *bad, receive = {.sg_list = &room, .num_sge = 1};
    MUST(!ibv_post_recv(loopback->qp[1], &receive, &bad)); /* 8 */
}

static void connect_again(struct loopback *loopback, const struct loopback_options *options)
{
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        MUST(!ibv_modify_qp(loopback->qp[end], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        loopback_connect(loopback, loopback->qp[end], loopback->qp[!end]->qp_num, options);
}

static void forget_receives(enum loopback_variant variant)
{
    struct loopback loopback;
    const struct loopback_options options = {.patient = true};
    loopback_open(&loopback, &options);
    post_receive(&loopback);
    send_one(&loopback);
    loopback_poll(&loopback, 2);
    connect_again(&loopback, &options);
    if (variant == TWIN)
        post_receive(&loopback);
    send_one(&loopback);
    if (variant == TWIN)
        loopback_poll(&loopback, 2);
    for (int times = 0; variant != TWIN && times < 3; times++)
        poll_in_vain(&loopback); /* 8 */
    loopback_close(&loopback);
}

static void *acknowledge_after_all(void *cq)
{
    wait_longer_than_the_checker();
    ibv_ack_cq_events(cq, 1);
    return NULL;
}

static void acknowledge_never(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_cq *cq;
    void *unused;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    post_receive(&loopback);
    send_one(&loopback);
    MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused));
    loopback_poll(&loopback, 2);
    if (variant == TWIN)
        ibv_ack_cq_events(cq, 1);
    else
        MUST(!pthread_create(&thread, NULL, acknowledge_after_all, cq)); /* so that this program ends */
    for (int end = 0; end < LOOPBACK_ENDS; end++) {
        MUST(!ibv_destroy_qp(loopback.qp[end]));
        loopback.qp[end] = NULL;
    }
    MUST(!ibv_destroy_cq(loopback.cq)); /* 10 */
    loopback.cq = NULL;
    if (variant != TWIN)
        MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
}

static void *arm_late(void *cq)
{
    wait_longer_than_the_checker();
    MUST(!ibv_req_notify_cq(cq, 0));
    return NULL;
}

static void wait_first(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_cq *cq;
    void *unused;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    if (variant == TWIN)
        MUST(!ibv_req_notify_cq(loopback.cq, 0));
    post_receive(&loopback);
    send_one(&loopback);
    if (variant != TWIN) {
        MUST(!pthread_create(&thread, NULL, arm_late, loopback.cq)); /* so that this program ends */
    }
    MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused)); /* 20 */
    ibv_ack_cq_events(cq, 1);
    if (variant != TWIN)
        MUST(!pthread_join(thread, NULL));
    loopback_poll(&loopback, 2);
    loopback_close(&loopback);
}

/* -- threads and processes: 9, 19 */

struct poster {
    struct loopback *loopback;
    int begun[2];
    atomic_bool stop;
};

static bool post_one(const struct poster *poster)
{
    struct ibv_sge sge = loopback_piece(poster->loopback, 0, 8);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)poster->loopback->memory + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = poster->loopback->mr->rkey;
    wr.send_flags = IBV_SEND_SIGNALED;
    int error = ibv_post_send(poster->loopback->qp[0], &wr, &bad); /* 9 */
    return !error || error == ENOMEM;
}

/* Posts until it is refused, as a thread that does not know of the end. */
static void *post_on(void *argument)
{
    struct poster *poster = argument;
    struct ibv_wc wc;
    for (unsigned count = 0; !atomic_load(&poster->stop) && post_one(poster); count++) {
        ibv_poll_cq(poster->loopback->cq, 1, &wc);
        if (count == LOOPBACK_DEPTH)
            MUST(write(poster->begun[1], "x", 1) == 1);
    }
    return NULL;
}

static void destroy_under_posts(enum loopback_variant variant)
{
    struct loopback loopback;
    struct poster poster = {.loopback = &loopback};
    pthread_t thread;
    char byte;
    loopback_open(&loopback, &(struct loopback_options){0});
    MUST(!pipe(poster.begun) && !pthread_create(&thread, NULL, post_on, &poster));
    MUST(read(poster.begun[0], &byte, 1) == 1);
    atomic_store(&poster.stop, variant == TWIN);
    if (variant == TWIN) {
        MUST(!pthread_join(thread, NULL));
        poll_in_vain(&loopback);
    }
    MUST(!ibv_destroy_qp(loopback.qp[0])); /* 9 */
    if (variant != TWIN)
        MUST(!pthread_join(thread, NULL));
    loopback.qp[0] = NULL;
    loopback_close(&loopback);
}

static void make_as_child(enum loopback_variant variant)
{
    struct loopback loopback;
    int status;
    loopback_open(&loopback, &(struct loopback_options){0});
    pid_t child = fork();
    if (!child) {
        struct ibv_context *context = loopback.context;
        if (variant == TWIN)
            context = ibv_open_device(context->device);
        struct ibv_cq *cq = context ? ibv_create_cq(context, 4, NULL, NULL, 0) : NULL; /* 19 */
        struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
        if (cq && pd)
            MUST(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
        MUST(context == loopback.context || !ibv_close_device(context));
        exit(0);
    }
    MUST(child > 0 && waitpid(child, &status, 0) == child);
    loopback_close(&loopback);
}

static const struct {
    int number;
    void (*run)(enum loopback_variant);
} cases[] = {
    {1, read_into_own_memory_only},
    {2, read_inline},
    {3, destroy_address_at_once},
    {4, post_inline_too_long},
    {5, deallocate_in_use},
    {6, destroy_queue_first},
    {7, write_again_early},
    {8, forget_receives},
    {9, destroy_under_posts},
    {10, acknowledge_never},
    {11, post_too_many_elements},
    {12, merge_too_much},
    {13, reuse_datagram_early},
    {14, give_other_key},
    {16, ask_for_many_entries},
    {17, leave_sgid_index},
    {18, receive_without_polls},
    {19, make_as_child},
    {20, wait_first},
    {21, mix_regions},
    {22, ask_for_depth},
    {23, shorten_number},
    {24, give_longer_region},
    {25, overfill},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        if (cases[i].number == atoi(argv[1])) {
            cases[i].run(strcmp(argv[2], "twin") ? FAULTY : TWIN);
            return 0;
        }
    fprintf(stderr, "public NUMBER faulty|twin\n");
    return 2;
}
