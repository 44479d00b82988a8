/* Posts: what they say, and that their results are looked at. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "mistakes.h"

/* More than the 100 ms for which the checker waits. */
static void poll_in_vain(struct loopback *loopback)
{
    enum { LONG = 150 /* ms */ };
    struct timespec begun, now;
    struct ibv_wc wc;
    MUST(!clock_gettime(CLOCK_MONOTONIC, &begun));
    do {
        MUST(!ibv_poll_cq(loopback->cq, 1, &wc));
        sched_yield();
        MUST(!clock_gettime(CLOCK_MONOTONIC, &now));
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < LONG);
}

/* Inline data that is too long; the twin posts it again without the flag. */
static void post_inline(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    int error = WRITE(&loopback, 0, 8192, IBV_SEND_SIGNALED | IBV_SEND_INLINE); /* post-refused faulty */
    MUST(error == EINVAL);
    if (variant == TWIN) {
        MUST(!WRITE(&loopback, 0, 8192, IBV_SEND_SIGNALED));
        loopback_poll(&loopback, 1);
    }
    poll_in_vain(&loopback);
    loopback_close(&loopback);
}

static void *write_late(void *argument)
{
    struct loopback *loopback = argument;
    wait_longer_than_the_checker();
    MUST(!WRITE(loopback, 0, 8, IBV_SEND_SIGNALED));
    return NULL;
}

/* A receive that is posted in RESET. Another thread ends the wait. */
static void post_receive_too_early(void)
{
    struct loopback loopback;
    struct loopback_options options = {.channel = true};
    pthread_t thread;
    struct ibv_cq *cq;
    void *unused;
    loopback_open(&loopback, &options);
    struct ibv_sge piece = loopback_piece(&loopback, 0, 64);
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    struct ibv_qp *early = loopback_make_qp(&loopback, &options);
    MUST(ibv_post_recv(early, &receive, &bad) == EINVAL); /* post-refused neighbour */
    loopback_listen(&loopback, early, loopback.qp[0]->qp_num, &options);
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    MUST(!pthread_create(&thread, NULL, write_late, &loopback));
    MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused));
    ibv_ack_cq_events(cq, 1);
    MUST(!pthread_join(thread, NULL));
    loopback_poll(&loopback, 1);
    MUST(!ibv_destroy_qp(early));
    loopback_close(&loopback);
}

void ignore_refusal(enum loopback_variant variant)
{
    if (variant == NEIGHBOUR)
        post_receive_too_early();
    else
        post_inline(variant);
}

/* Two more than the queue takes; the twin stops at the first that is refused. */
void fill_and_ignore(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = piece.addr + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    for (; wr.wr_id < LOOPBACK_DEPTH + 2; wr.wr_id++)
        if (ibv_post_send(loopback.qp[0], &wr, &rest) && variant == TWIN)
            break;
    loopback_poll(&loopback, LOOPBACK_DEPTH);
    poll_in_vain(&loopback);
    loopback_close(&loopback);
}
