/* Two processes send each other messages in turn, a call and its reply, and poll. Of each side's messages one in 16 is
 * signalled, and waited for. When the last reply is there all calls have ended, so that no call is flushed then. Usage:
 * turns EXCHANGES. */
#include <stdlib.h>

#include "pair.h"

enum { LENGTH = 8, TIMEOUT = 14, SIGNALLED = 16, DEPTH = 2 * SIGNALLED, CALL = 1 };

struct turns {
    struct side side;
    int sent, received; /* completions seen */
};

static struct meeting *meeting;

static void take_completion(struct turns *turns, const char *what)
{
    struct ibv_wc wc = side_poll(&turns->side, what);
    turns->sent += wc.opcode == IBV_WC_SEND;
    turns->received += wc.opcode == IBV_WC_RECV;
}

static void call(struct turns *turns, int number)
{
    bool signalled = number % SIGNALLED == SIGNALLED - 1;
    int before = turns->sent;
    side_send(&turns->side, CALL, signalled ? IBV_SEND_SIGNALED : 0);
    while (signalled && turns->sent == before)
        take_completion(turns, "the end of a call");
}

static void receive(struct turns *turns, int number)
{
    while (turns->received == number)
        take_completion(turns, "a message");
    side_receive(&turns->side);
}

/* A receive is, which was posted after the last message. */
static void flush(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;
    if (ibv_modify_qp(side->qp, &attr, IBV_QP_STATE))
        die("no ERR");
    while (ibv_poll_cq(side->endpoint.cq, 1, &wc) == 1)
        if (wc.wr_id == CALL)
            die("a call had not ended when its reply came: %s", ibv_wc_status_str(wc.status));
}

static void live(int self, void *exchanges)
{
    struct turns turns = {.sent = 0};
    side_open(&turns.side, meeting, self, NULL, LENGTH, DEPTH);
    side_receive(&turns.side);
    side_connect(&turns.side, TIMEOUT);
    side_meet(&turns.side, 2);
    for (int i = 0; i < *(int *)exchanges; i++) {
        if (!self)
            call(&turns, i);
        receive(&turns, i);
        if (self)
            call(&turns, i);
    }
    if (!self)
        flush(&turns.side);
    side_meet(&turns.side, 3);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        die("Usage: turns EXCHANGES");
    int exchanges = atoi(argv[1]);
    meeting = pair_share(sizeof *meeting);
    return pair_run(live, &exchanges);
}
