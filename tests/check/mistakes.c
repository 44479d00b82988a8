/* Programs that break one rule of the checker each: mistakes CASE VARIANT. A variant is `faulty`, its correct `twin`,
 * or a `neighbour`, which breaks the rule with another object, size or order. The line that a finding must name ends in
 * a comment with the case's name and variant. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.h"

/* A WRITE of so many bytes from `at`, posted by the caller's line. */
#define WRITE(loopback, from, bytes, flags)                                                                            \
    __extension__({                                                                                                    \
        struct ibv_sge sge = loopback_piece(loopback, from, bytes);                                                    \
        struct ibv_send_wr *rest, wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};       \
        wr.send_flags = (flags);                                                                                       \
        wr.wr.rdma.remote_addr = (uintptr_t)(loopback)->memory + LOOPBACK_MEMORY / 2;                                  \
        wr.wr.rdma.rkey = (loopback)->mr->rkey;                                                                        \
        ibv_post_send((loopback)->qp[0], &wr, &rest);                                                                  \
    })

static void write_by_builders(struct loopback *loopback, unsigned from, unsigned bytes)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_id = 8;
    qp->wr_flags = IBV_SEND_SIGNALED;
    /* send-buffer-changed neighbour */
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory + from, bytes);
    MUST(!ibv_wr_complete(qp));
}

/* Of 64 bytes the first; of 20000 the last. */
static void change_send_buffer(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    if (variant == NEIGHBOUR)
        write_by_builders(&loopback, 0, 20000);
    else
        MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED)); /* send-buffer-changed faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    loopback.memory[variant == NEIGHBOUR ? 19999 : 0]++;
    if (variant != TWIN)
        loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* -- memory regions */

static struct ibv_mr *register_half(struct loopback *loopback)
{
    struct ibv_mr *mr = ibv_reg_mr(loopback->pd, loopback->memory, LOOPBACK_MEMORY / 2, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    return mr;
}

/* With a WRITE that was not polled; with a receive that waits. */
static void deregister_in_use(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *whole = loopback.mr, *half = register_half(&loopback);
    struct ibv_sge piece = {(uintptr_t)loopback.memory, 64, half->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    loopback.mr->lkey = half->lkey;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad)); /* region-in-use neighbour */
    else
        MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED)); /* region-in-use faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(half));
    if (variant == FAULTY)
        loopback_poll(&loopback, 1);
    loopback.mr = whole;
    loopback_close(&loopback);
}

/* All of it; the second page of two. */
static void unmap_in_flight(enum loopback_variant variant)
{
    enum { PAGE = 4096, PAGES = 2 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, pages, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    struct ibv_sge piece = {(uintptr_t)pages, PAGES * PAGE, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 9, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* buffer-unmapped neighbour */
    else
        MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* buffer-unmapped faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    MUST(!munmap(variant == NEIGHBOUR ? pages + PAGE : pages, variant == NEIGHBOUR ? PAGE : PAGES * PAGE));
    if (variant != TWIN)
        loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* -- queues */

/* Sends; receives. */
static void overrun_cq(enum loopback_variant variant)
{
    enum { ENTRIES = 4 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.entries = ENTRIES});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    for (int entry = 0; entry < loopback.cq->cqe; entry++)
        if (variant == NEIGHBOUR)
            MUST(!ibv_post_recv(loopback.qp[entry % 2], &receive, &bad));
        else
            MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad)); /* cq-overrun neighbour */
    else
        MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED)); /* cq-overrun faulty */
    loopback_close(&loopback);
}

static int write_by_builder(struct loopback *loopback, unsigned flags)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_flags = flags;
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory, 8);
    return ibv_wr_complete(qp); /* send-queue-stuck neighbour */
}

/* By lists; by builders. The twin's last but one is signalled. */
static void fill_send_queue(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    for (int posted = 0; posted < LOOPBACK_DEPTH; posted++) {
        unsigned flags = variant == TWIN && posted == LOOPBACK_DEPTH - 1 ? IBV_SEND_SIGNALED : 0;
        MUST(!(variant == NEIGHBOUR ? write_by_builder(&loopback, flags) : WRITE(&loopback, 0, 8, flags)));
    }
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    int error =
        variant == NEIGHBOUR ? write_by_builder(&loopback, 0) : WRITE(&loopback, 0, 8, 0); /* send-queue-stuck faulty */
    MUST(variant == TWIN ? !error : error == ENOMEM);
    loopback_close(&loopback);
}

/* -- attributes: of the two that are connected to each other; of one that is connected to itself */

static void connect_with(enum loopback_variant variant, const struct loopback_options *wrong)
{
    struct loopback loopback;
    const struct loopback_options usual = {0};
    /* timeout-zero faulty */
    /* retry-zero faulty */
    /* rnr-retry-endless faulty */
    loopback_open(&loopback, variant == FAULTY ? wrong : &usual);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &usual);
    /* timeout-zero neighbour */
    /* retry-zero neighbour */
    /* rnr-retry-endless neighbour */
    loopback_connect(&loopback, qp, qp->qp_num, variant == NEIGHBOUR ? wrong : &usual);
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

static void connect_without_timeout(enum loopback_variant variant)
{
    connect_with(variant, &(struct loopback_options){.timeout_zero = true});
}

static void connect_without_retries(enum loopback_variant variant)
{
    connect_with(variant, &(struct loopback_options){.retry_zero = true});
}

static void connect_for_ever(enum loopback_variant variant)
{
    connect_with(variant, &(struct loopback_options){.rnr_endless = true});
}

/* A CQ when its context is closed; a PD of a context that stays open. */
static void leave_behind(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_cq *cq = NULL;
    if (variant == FAULTY)
        cq = ibv_create_cq(loopback.context, 1, NULL, NULL, 0); /* never-destroyed faulty */
    struct ibv_pd *pd = NULL;
    if (variant != FAULTY)
        pd = ibv_alloc_pd(loopback.context); /* never-destroyed neighbour */
    MUST(cq || pd);
    if (variant == TWIN)
        MUST(!ibv_dealloc_pd(pd));
    loopback_close(&loopback);
}

/* -- of no rule by itself: options_test.py */

/* The same mistake at the same place, five times. */
static void repeat_mistake(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    for (int times = 0; times < 5; times++) {
        MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED));
        loopback.memory[0]++;
        loopback_poll(&loopback, 1);
    }
    loopback_close(&loopback);
}

/* Parent and child leave a PD behind, each its own. */
static void leave_in_both(enum loopback_variant variant)
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

static const struct {
    const char *name;
    void (*run)(enum loopback_variant);
} cases[] = {
    {"send-buffer-changed", change_send_buffer},
    {"region-in-use", deregister_in_use},
    {"buffer-unmapped", unmap_in_flight},
    {"cq-overrun", overrun_cq},
    {"send-queue-stuck", fill_send_queue},
    {"timeout-zero", connect_without_timeout},
    {"retry-zero", connect_without_retries},
    {"rnr-retry-endless", connect_for_ever},
    {"never-destroyed", leave_behind},
    {"many", repeat_mistake},
    {"fork", leave_in_both},
};

int main(int argc, char **argv)
{
    static const char *const variants[] = {[FAULTY] = "faulty", [TWIN] = "twin", [NEIGHBOUR] = "neighbour"};
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        for (enum loopback_variant variant = FAULTY; variant <= NEIGHBOUR; variant++)
            if (!strcmp(cases[i].name, argv[1]) && !strcmp(variants[variant], argv[2])) {
                cases[i].run(variant);
                return 0;
            }
    fprintf(stderr, "mistakes CASE faulty|twin|neighbour\n");
    return 2;
}
