/* A receiver that posts its receive some time after the message has arrived, and a sender without an ACK timer (timeout
 * 0): the RNR NAK's wait must end all the same. Usage: tardy HOST HOST ROUNDS (hosts: names for ip-netns(8)), each the
 * place of one process. Exit status 0 when every message arrives. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { LENGTH = 64, NO_TIMEOUT = 0, LATE = 2000 /* microseconds */, SENDER = 0, RECEIVER = 1 };

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
    int self;
};

static void meet(struct side *side, unsigned stage)
{
    endpoint_meet(side->meeting->stages, side->self, stage, PATIENCE_SECONDS);
}

static void post(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, LENGTH, side->mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    if (side->self == SENDER ? ibv_post_send(side->qp, &send, &bad_send)
                             : ibv_post_recv(side->qp, &receive, &bad_receive))
        die("nothing can be posted");
}

static void exchange(struct side *side, unsigned round)
{
    struct ibv_wc wc;
    meet(side, round);
    if (side->self == RECEIVER)
        usleep(LATE); /* the receive is late: what is tested */
    post(side);
    if (endpoint_wait(&side->endpoint, &wc, 1, PATIENCE_SECONDS) != 1 || wc.status != IBV_WC_SUCCESS)
        die("round %u does not end well at %s", round, side->self == SENDER ? "the sender" : "the receiver");
}

static void live(struct meeting *meeting, int self, const char *host, unsigned rounds)
{
    static struct side side;
    side.meeting = meeting;
    side.self = self;
    endpoint_go_to(host);
    endpoint_open(&side.endpoint, 4);
    side.mr = endpoint_register(&side.endpoint, side.memory, LENGTH);
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, 1, 1);
    meeting->addresses[self] = endpoint_address(&side.endpoint, side.qp, side.mr);
    meet(&side, 1);
    endpoint_connect(side.qp, &meeting->addresses[!self], NO_TIMEOUT);
    for (unsigned round = 0; round < rounds; round++)
        exchange(&side, 2 + round);
    exit(0);
}

int main(int argc, char **argv)
{
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;
    if (argc != 4 || meeting == MAP_FAILED)
        die("Usage: tardy HOST HOST ROUNDS");
    for (int self = 0; self < 2; self++)
        if (!fork())
            live(meeting, self, argv[1 + self], (unsigned)atoi(argv[3]));
    for (int self = 0; self < 2; self++) {
        int status;
        wait(&status);
        bad |= status;
    }
    return bad != 0;
}
