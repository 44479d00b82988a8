/* A process ends as soon as it has received a message, without destroying anything; the sender of the message must
 * still see it acknowledged, as from an adapter, which acknowledges before it completes the receive. Usage:
 * exit_after_receive HOST HOST ROUNDS (hosts: names for ip-netns(8)), or exit_after_receive here here ROUNDS: both on
 * this host, and they end with _exit; or exit_after_receive quietly quietly ROUNDS, or exit_after_receive suddenly
 * suddenly ROUNDS: both on this host, and the sender does not wait for the end of the message, so that the receiver
 * need not acknowledge it before it ends, with exit or _exit. Each round is a process on each host. Prints how long the
 * last message took to be acknowledged; exit status 0 when it was, each time. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "pair.h"

enum { LENGTH = 64, TIMEOUT = 20, SHORT_TIMEOUT = 14 };

struct run {
    struct meeting meeting;
    bool here, abruptly, quietly;
    atomic_uint slowest; /* microseconds that the sender waited */
};

static struct run *run;

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

/* Quietly there are two of them, as a queue pair's first asks for an ACK in any case. */
static void send_last_message(struct side *side)
{
    if (run->quietly)
        usleep(5000); /* the other one polls by then, and its helper thread leaves the work to it */
    double began = now_seconds();
    for (int i = 0; i <= run->quietly; i++)
        side_send(side, 0, run->quietly ? 0 : IBV_SEND_SIGNALED);
    if (run->quietly)
        wait_until_drained(side);
    else
        side_poll(side, "the end of the message");
    unsigned took = (unsigned)((now_seconds() - began) * 1e6);
    if (took > run->slowest)
        run->slowest = took;
}

static void live(int self, void *hosts)
{
    struct side side;
    side_open(&side, &run->meeting, self, run->here ? NULL : ((char **)hosts)[self], LENGTH, 2);
    for (int i = 0; self == RECEIVER && i <= run->quietly; i++)
        side_receive(&side);
    side_connect(&side, run->quietly ? SHORT_TIMEOUT : TIMEOUT);
    side_meet(&side, 2);
    for (int i = 0; self == RECEIVER && i <= run->quietly; i++)
        side_poll(&side, "the message");
    if (self == SENDER)
        send_last_message(&side);
    if (run->abruptly)
        _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("Usage: exit_after_receive HOST HOST ROUNDS");
    run = pair_share(sizeof *run);
    bool suddenly = !strcmp(argv[1], "suddenly");
    run->abruptly = !strcmp(argv[1], "here") || suddenly;
    run->quietly = !strcmp(argv[1], "quietly") || suddenly;
    run->here = run->abruptly || run->quietly;
    for (int round = 0; round < atoi(argv[3]); round++) {
        run->meeting = (struct meeting){.stages = {0}};
        if (pair_run(live, argv + 1))
            die("round %d ends badly", round);
    }
    printf("acknowledged within %u us\n", run->slowest);
    return 0;
}
