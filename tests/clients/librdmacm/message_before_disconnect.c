/* A message, and then the end of the connection, or a WRITE with a wrong key, which is an asynchronous event: the
 * receiver, which sleeps until one of its two channels has something, must not learn of that before it learns of the
 * message.
 *
 *     message_before_disconnect end|key ADDRESS PORT ROUNDS
 *
 * The parent serves. It stops its child, says both, and lets it go on, so that the child's library finds both at once.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"

enum { ASLEEP_US = 2000 /* after which the child has gone to sleep */, LENGTH = 64 };

static bool wrong_key; /* follows the message */

struct end {
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char memory[LENGTH];
};

static void check(bool right, const char *what)
{
    if (right)
        return;
    perror(what);
    exit(1);
}

static struct rdma_cm_id *take(struct end *end, enum rdma_cm_event_type expected)
{
    struct rdma_cm_event *event;
    check(!rdma_get_cm_event(end->events, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    check(event->event == expected, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return id;
}

static void make(struct end *end)
{
    end->pd = ibv_alloc_pd(end->id->verbs);
    end->channel = ibv_create_comp_channel(end->id->verbs);
    check(end->pd && end->channel, "ibv_create_comp_channel");
    end->cq = ibv_create_cq(end->id->verbs, 4, NULL, end->channel, 0);
    end->mr = ibv_reg_mr(end->pd, end->memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
    check(end->cq && end->mr && !ibv_req_notify_cq(end->cq, 0), "ibv_req_notify_cq");
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC, .cap = {2, 1, 1, 1, 0}};
    check(!rdma_create_qp(end->id, end->pd, &init), "rdma_create_qp");
}

static void unmake(struct end *end)
{
    rdma_destroy_qp(end->id);
    ibv_dereg_mr(end->mr);
    ibv_destroy_cq(end->cq);
    ibv_destroy_comp_channel(end->channel);
    ibv_dealloc_pd(end->pd);
    rdma_destroy_id(end->id);
}

static struct rdma_conn_param usual(void)
{
    return (struct rdma_conn_param){.retry_count = 7, .rnr_retry_count = 7};
}

/* --- the child */

static void ask(struct end *end, struct sockaddr *server)
{
    struct rdma_conn_param parameters = usual();
    check(!rdma_create_id(end->events, &end->id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_resolve_addr(end->id, NULL, server, PATIENCE), "rdma_resolve_addr");
    take(end, RDMA_CM_EVENT_ADDR_RESOLVED);
    check(!rdma_resolve_route(end->id, PATIENCE), "rdma_resolve_route");
    take(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make(end);
    struct ibv_sge sge = {(uintptr_t)end->memory, LENGTH, end->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    check(!ibv_post_recv(end->id->qp, &wr, &bad), "ibv_post_recv");
    check(!rdma_connect(end->id, &parameters), "rdma_connect");
    take(end, RDMA_CM_EVENT_ESTABLISHED);
}

static void take_refusal(struct end *end)
{
    struct ibv_async_event event;
    check(!ibv_get_async_event(end->id->verbs, &event), "ibv_get_async_event");
    check(event.event_type == IBV_EVENT_QP_ACCESS_ERR, ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
}

/* Returns true if the event that follows the message was reported while the message was not. */
static bool hear(struct end *end, int ready)
{
    int other = wrong_key ? end->id->verbs->async_fd : end->events->fd;
    struct pollfd both[] = {{.fd = other, .events = POLLIN}, {.fd = end->channel->fd, .events = POLLIN}};
    struct ibv_wc wc;
    check(write(ready, "", 1) == 1, "write");
    check(poll(both, 2, PATIENCE) > 0, "poll");
    bool overtaken = !(both[1].revents & POLLIN);
    wrong_key ? take_refusal(end) : (void)take(end, RDMA_CM_EVENT_DISCONNECTED);
    check(ibv_poll_cq(end->cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "the message");
    rdma_disconnect(end->id);
    return overtaken;
}

static int listen_to(struct sockaddr *server, int ready, int rounds)
{
    int overtaken = 0;
    struct end end = {.events = rdma_create_event_channel()};
    check(end.events, "rdma_create_event_channel");
    for (int i = 0; i < rounds; i++) {
        ask(&end, server);
        overtaken += hear(&end, ready);
        unmake(&end);
    }
    printf("%d of %d events were heard of before the message\n", overtaken, rounds);
    return overtaken != 0;
}

/* --- the parent */

static void say(struct end *end, pid_t child, int ready)
{
    char byte;
    struct ibv_sge sge = {(uintptr_t)end->memory, 5, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    check(read(ready, &byte, 1) == 1, "read");
    usleep(ASLEEP_US); /* the child has gone from its word to its sleep */
    check(!kill(child, SIGSTOP) && waitpid(child, NULL, WUNTRACED) == child, "SIGSTOP");
    struct ibv_send_wr write = wr;
    write.opcode = IBV_WR_RDMA_WRITE;
    wr.next = wrong_key ? &write : NULL;
    check(!ibv_post_send(end->id->qp, &wr, &bad), "ibv_post_send");
    check(wrong_key || !rdma_disconnect(end->id), "rdma_disconnect");
    kill(child, SIGCONT);
}

static void serve(struct end *end, pid_t child, int ready)
{
    struct rdma_conn_param parameters = usual();
    end->id = take(end, RDMA_CM_EVENT_CONNECT_REQUEST);
    make(end);
    check(!rdma_accept(end->id, &parameters), "rdma_accept");
    take(end, RDMA_CM_EVENT_ESTABLISHED);
    say(end, child, ready);
    take(end, RDMA_CM_EVENT_DISCONNECTED);
    unmake(end);
}

int main(int argc, char **argv)
{
    struct rdma_cm_id *listener = NULL;
    struct sockaddr_in server = {.sin_family = AF_INET};
    int listening[2], ready[2], status;
    char byte;
    if (argc != 5 || (strcmp(argv[1], "end") && strcmp(argv[1], "key")) || !inet_aton(argv[2], &server.sin_addr))
        return 2;
    wrong_key = !strcmp(argv[1], "key");
    server.sin_port = htons((uint16_t)atoi(argv[3]));
    check(!pipe(listening) && !pipe(ready), "pipe");
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may be stopped then */
        check(read(listening[0], &byte, 1) == 1, "read");
        return listen_to((struct sockaddr *)&server, ready[1], atoi(argv[4]));
    }
    close(ready[1]); /* so that the child's death ends the read */
    struct end end = {.events = rdma_create_event_channel()};
    check(end.events && !rdma_create_id(end.events, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_bind_addr(listener, (struct sockaddr *)&server) && !rdma_listen(listener, 1), "rdma_listen");
    check(write(listening[1], "", 1) == 1, "write");
    for (int i = atoi(argv[4]); i > 0; i--)
        serve(&end, child, ready[0]);
    check(waitpid(child, &status, 0) == child, "waitpid");
    return !WIFEXITED(status) || WEXITSTATUS(status);
}
