/* A program with one mistake, for softverbs sweep: swept crash|hang|lose|leak, and its mended twins: swept mended,
 * and swept status, which ends with 255. swept spurious takes an event for a completion; its twin is swept looks.
 * swept forgets looks at no result of a post; its twin, swept again, posts again. swept places makes a hundred calls in
 * one place and thirty in another. */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

static const char *mistake;
static void *volatile lost;

/* Ends the program where the call has failed, unless that is the mistake. */
static void need(bool good, const char *unless)
{
    if (good || !strcmp(mistake, unless))
        return;
    fprintf(stderr, "no %s\n", unless);
    if (!strcmp(mistake, "leak"))
        lost = malloc(100), lost = NULL;
    exit(strcmp(mistake, "status") ? 1 : 255);
}

static void wait_for_completion(struct ibv_cq *cq)
{
    if (!cq)
        for (;;)
            pause();
}

/* A message to itself, and what its event brings. */
static void exchange(struct ibv_pd *pd)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(pd->context);
    struct ibv_cq *cq = ibv_create_cq(pd->context, 4, NULL, channel, 0), *of;
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = 2, .opcode = IBV_WR_SEND}, *bad_send;
    struct pollfd another = {.fd = channel->fd, .events = POLLIN};
    struct ibv_wc wc;
    void *context;
    need(qp, "qp");
    loop_connect(qp, 14, 7, 7);
    need(!ibv_post_recv(qp, &receive, &bad_receive) && !ibv_req_notify_cq(cq, 0) &&
             !ibv_post_send(qp, &send, &bad_send),
         "work");
    do {
        need(!ibv_get_cq_event(channel, &of, &context), "event");
        ibv_ack_cq_events(of, 1);
        need(ibv_poll_cq(cq, 1, &wc) == 1, "looks");
    } while (poll(&another, 1, 300) > 0);
}

/* A message to itself, for which two receives are posted. */
static void send_one(struct ibv_pd *pd)
{
    struct ibv_cq *cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
    need(cq, "cq");
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
    struct ibv_wc wc[2];
    int done = 0;
    need(qp, "qp");
    loop_connect(qp, 14, 7, 7);
    need(!ibv_post_recv(qp, &receive, &bad_receive), "receive");
    if (ibv_post_recv(qp, &receive, &bad_receive) && !strcmp(mistake, "again"))
        need(!ibv_post_recv(qp, &receive, &bad_receive), "receive");
    need(!ibv_post_send(qp, &send, &bad_send), "send");
    while (done < 2)
        done += ibv_poll_cq(cq, 2, wc);
}

static __attribute__((noinline)) void make_region(struct ibv_pd *pd, void *memory)
{
    need(ibv_reg_mr(pd, memory, 1, IBV_ACCESS_LOCAL_WRITE), "region");
}

/* Through a pointer, so that no compiler makes a function of each call. */
static void make_regions(struct ibv_pd *pd, char *memory)
{
    static void (*volatile make)(struct ibv_pd *, void *) = make_region;
    for (int i = 0; i < 100; i++)
        make(pd, memory);
    for (int i = 0; i < 30; i++)
        make(pd, memory + 1);
}

int main(int argc, char **argv)
{
    static char memory[64];
    mistake = argc > 1 ? argv[1] : "";
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    need(context, "device");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    need(pd, "crash");
    memory[0] = pd->context == context;
    if (!strcmp(mistake, "spurious") || !strcmp(mistake, "looks")) {
        exchange(pd);
        return 0;
    }
    if (!strcmp(mistake, "again") || !strcmp(mistake, "forgets")) {
        send_one(pd);
        return 0;
    }
    if (!strcmp(mistake, "places")) {
        make_regions(pd, memory);
        return 0;
    }
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    need(mr, "lose");
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    need(cq, "hang");
    wait_for_completion(cq);
    need(!ibv_destroy_cq(cq), "cq");
    need(!mr || !ibv_dereg_mr(mr), "mr");
    need(!ibv_dealloc_pd(pd), "pd");
    return ibv_close_device(context) ? 1 : 0;
}
