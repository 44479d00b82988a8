/* Two processes send each other messages in turn, a call and its reply, and poll. Of each side's messages one in 16 is
 * signalled, and waited for. When the last reply is there all calls have ended, so that no call is flushed then. Usage:
 * turns EXCHANGES. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { LENGTH = 8, TIMEOUT = 14, SIGNALLED = 16, DEPTH = 2 * SIGNALLED, CALL = 1 };

struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
};

struct side {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char memory[LENGTH];
    int self, sent, received; /* completions seen */
};

static void meet(struct side *side, unsigned stage)
{
    endpoint_meet(side->meeting->stages, side->self, stage, PATIENCE_SECONDS);
}

static void take_completion(struct side *side, const char *what)
{
    struct ibv_wc wc;
    double deadline = now_seconds() + PATIENCE_SECONDS;
    int found;
    while (!(found = ibv_poll_cq(side->endpoint.cq, 1, &wc)))
        if (now_seconds() > deadline)
            die("%s does not come, after %d sent and %d received", what, side->sent, side->received);
    if (found < 0 || wc.status != IBV_WC_SUCCESS)
        die("%s: %s", what, found < 0 ? "ibv_poll_cq fails" : ibv_wc_status_str(wc.status));
    side->sent += wc.opcode == IBV_WC_SEND;
    side->received += wc.opcode == IBV_WC_RECV;
}

static void post_receive(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, LENGTH, side->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

static void post(struct side *side, bool signalled)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, LENGTH, side->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = CALL, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_send_wr *bad;
    wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
    if (ibv_post_send(side->qp, &wr, &bad))
        die("ibv_post_send fails");
}

static void call(struct side *side, int number)
{
    bool signalled = number % SIGNALLED == SIGNALLED - 1;
    int before = side->sent;
    post(side, signalled);
    while (signalled && side->sent == before)
        take_completion(side, "the end of a call");
}

static void receive(struct side *side, int number)
{
    while (side->received == number)
        take_completion(side, "a message");
    post_receive(side);
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

static void live(struct meeting *meeting, int self, int exchanges)
{
    static struct side side;
    side.meeting = meeting;
    side.self = self;
    endpoint_open(&side.endpoint, 2 * DEPTH);
    side.mr = endpoint_register(&side.endpoint, side.memory, LENGTH);
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, DEPTH, DEPTH);
    meeting->addresses[self] = endpoint_address(&side.endpoint, side.qp, side.mr);
    meet(&side, 1);
    post_receive(&side);
    endpoint_connect(side.qp, &meeting->addresses[!self], TIMEOUT);
    meet(&side, 2);
    for (int i = 0; i < exchanges; i++) {
        if (!self)
            call(&side, i);
        receive(&side, i);
        if (self)
            call(&side, i);
    }
    if (!self)
        flush(&side);
    meet(&side, 3);
    exit(0);
}

int main(int argc, char **argv)
{
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;
    if (argc != 2 || meeting == MAP_FAILED)
        die("Usage: turns EXCHANGES");
    for (int self = 0; self < 2; self++)
        if (!fork())
            live(meeting, self, atoi(argv[1]));
    for (int self = 0; self < 2; self++) {
        int status;
        wait(&status);
        bad |= status;
    }
    return bad != 0;
}
