/* A process ends as soon as it has received a message, without destroying anything; the sender of the message must
 * still see it acknowledged, as from an adapter, which acknowledges before it completes the receive. Usage:
 * exit_after_receive HOST HOST ROUNDS (hosts: names for ip-netns(8)), or exit_after_receive here here ROUNDS: both on
 * this host, and they end with _exit; or exit_after_receive quietly quietly ROUNDS, or exit_after_receive suddenly
 * suddenly ROUNDS: both on this host, and the sender does not wait for the end of the message, so that the receiver
 * need not acknowledge it before it ends, with exit or _exit. Each round is a process on each host. Prints how long the
 * last message took to be acknowledged; exit status 0 when it was, each time. */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { LENGTH = 64, TIMEOUT = 20, SHORT_TIMEOUT = 14, SENDER = 0, RECEIVER = 1 };

struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
    bool here, abruptly, quietly;
    atomic_uint slowest; /* microseconds that the sender waited */
};

struct side {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char memory[LENGTH];
    int self;
};

static void meet(struct side *side, unsigned stage)
{
    endpoint_meet(side->meeting->stages, side->self, stage, PATIENCE_SECONDS);
}

/* All work that was begun has ended, and well: otherwise there is a completion, and no event. */
static void wait_until_drained(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct pollfd fd = {.fd = side->endpoint.context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    struct ibv_wc wc = {0};
    if (ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY))
        die("no SQD");
    if (poll(&fd, 1, PATIENCE) != 1) {
        ibv_poll_cq(side->endpoint.cq, 1, &wc);
        die("the message does not end: %s", ibv_wc_status_str(wc.status));
    }
    if (ibv_get_async_event(side->endpoint.context, &event) || event.event_type != IBV_EVENT_SQ_DRAINED)
        die("%s", ibv_event_type_str(event.event_type));
}

/* The fast path of a program: no thread sleeps. */
static void poll_for_completion(struct side *side)
{
    struct ibv_wc wc;
    double deadline = now_seconds() + PATIENCE_SECONDS;
    int found;
    while (!(found = ibv_poll_cq(side->endpoint.cq, 1, &wc)))
        if (now_seconds() > deadline)
            die("nothing completes");
    if (found < 0 || wc.status != IBV_WC_SUCCESS)
        die("%s", found < 0 ? "ibv_poll_cq fails" : ibv_wc_status_str(wc.status));
}

/* Quietly there are two of them, as a queue pair's first asks for an ACK in any case. */
static void send_last_message(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, LENGTH, side->mr->lkey};
    bool quietly = side->meeting->quietly;
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = quietly ? 0 : IBV_SEND_SIGNALED},
                       *bad;
    if (quietly)
        usleep(5000); /* the other one polls by then, and its helper thread leaves the work to it */
    double began = now_seconds();
    for (int i = 0; i <= quietly; i++)
        if (ibv_post_send(side->qp, &wr, &bad))
            die("ibv_post_send fails");
    if (quietly)
        wait_until_drained(side);
    else
        poll_for_completion(side);
    unsigned took = (unsigned)((now_seconds() - began) * 1e6);
    if (took > side->meeting->slowest)
        side->meeting->slowest = took;
}

static void post_receive(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, LENGTH, side->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

static void live(struct meeting *meeting, int self, const char *host)
{
    static struct side side;
    side.meeting = meeting;
    side.self = self;
    if (!meeting->here)
        endpoint_go_to(host);
    endpoint_open(&side.endpoint, 4);
    side.mr = endpoint_register(&side.endpoint, side.memory, LENGTH);
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, 2, 2);
    meeting->addresses[self] = endpoint_address(&side.endpoint, side.qp, side.mr);
    meet(&side, 1);
    for (int i = 0; self == RECEIVER && i <= meeting->quietly; i++)
        post_receive(&side);
    endpoint_connect(side.qp, &meeting->addresses[!self], meeting->quietly ? SHORT_TIMEOUT : TIMEOUT);
    meet(&side, 2);
    for (int i = 0; self == RECEIVER && i <= meeting->quietly; i++)
        poll_for_completion(&side);
    if (self == SENDER)
        send_last_message(&side);
    if (meeting->abruptly)
        _exit(0);
    exit(0);
}

static int run_round(struct meeting *meeting, char **hosts)
{
    int bad = 0;
    meeting->stages[0] = meeting->stages[1] = 0;
    for (int self = 0; self < 2; self++)
        if (!fork())
            live(meeting, self, hosts[self]);
    for (int self = 0; self < 2; self++) {
        int status;
        wait(&status);
        bad |= status;
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 4 || meeting == MAP_FAILED)
        die("Usage: exit_after_receive HOST HOST ROUNDS");
    bool suddenly = !strcmp(argv[1], "suddenly");
    meeting->abruptly = !strcmp(argv[1], "here") || suddenly;
    meeting->quietly = !strcmp(argv[1], "quietly") || suddenly;
    meeting->here = meeting->abruptly || meeting->quietly;
    for (int round = 0; round < atoi(argv[3]); round++)
        if (run_round(meeting, argv + 1))
            die("round %d ends badly", round);
    printf("acknowledged within %u us\n", meeting->slowest);
    return 0;
}
