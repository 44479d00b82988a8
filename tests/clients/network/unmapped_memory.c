/* Memory that is registered and gone, between two hosts: both processes live on and see the error that the operation
 * has. Usage: gone HOST HOST (hosts: names for ip-netns(8)). Each row is a process on each host. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { ROOM = 65536, TIMEOUT = 16, SENDER = 0, RECEIVER = 1, QUIET = -1 };

struct row {
    enum ibv_wr_opcode opcode;
    int loser; /* SENDER or RECEIVER */
    uint32_t length;
    int status, reason; /* of the sender's work request; its vendor_err, docs/reference/errors.md */
    int receive_status; /* of the receiver's receive; QUIET: it waits */
    int receive_reason;
};

static const struct row rows[] = {
    {IBV_WR_SEND, SENDER, 64, IBV_WC_LOC_PROT_ERR, 117, QUIET, 0},
    {IBV_WR_SEND, SENDER, 20000, IBV_WC_LOC_PROT_ERR, 117, QUIET, 0},
    {IBV_WR_RDMA_WRITE, SENDER, 20000, IBV_WC_LOC_PROT_ERR, 117, QUIET, 0},
    {IBV_WR_RDMA_READ, SENDER, 20000, IBV_WC_LOC_PROT_ERR, 117, QUIET, 0},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, SENDER, 8, IBV_WC_LOC_PROT_ERR, 117, QUIET, 0},
    {IBV_WR_SEND, RECEIVER, 64, IBV_WC_REM_OP_ERR, 109, IBV_WC_LOC_PROT_ERR, 231},
    {IBV_WR_SEND, RECEIVER, 20000, IBV_WC_REM_OP_ERR, 109, IBV_WC_LOC_PROT_ERR, 231},
    {IBV_WR_RDMA_WRITE, RECEIVER, 64, IBV_WC_REM_ACCESS_ERR, 108, IBV_WC_WR_FLUSH_ERR, 100},
    {IBV_WR_RDMA_WRITE, RECEIVER, 20000, IBV_WC_REM_ACCESS_ERR, 108, IBV_WC_WR_FLUSH_ERR, 100},
    {IBV_WR_RDMA_READ, RECEIVER, 64, IBV_WC_REM_ACCESS_ERR, 108, IBV_WC_WR_FLUSH_ERR, 100},
    {IBV_WR_RDMA_READ, RECEIVER, 20000, IBV_WC_REM_ACCESS_ERR, 108, IBV_WC_WR_FLUSH_ERR, 100},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, RECEIVER, 8, IBV_WC_REM_ACCESS_ERR, 108, IBV_WC_WR_FLUSH_ERR, 100},
};

struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
};

struct side {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory;
    int self;
};

static void meet(struct side *side, unsigned stage)
{
    endpoint_meet(side->meeting->stages, side->self, stage, PATIENCE_SECONDS);
}

/* The page with the middle of the message. */
static void lose(struct side *side, uint32_t length)
{
    if (mprotect(side->memory + length / 2 / 4096 * 4096, 4096, PROT_NONE))
        die("mprotect fails");
}

static void expect(struct side *side, int status, int reason)
{
    struct ibv_wc wc;
    if (endpoint_wait(&side->endpoint, &wc, 1, PATIENCE_SECONDS) != 1)
        die("nothing completes");
    if ((int)wc.status != status || (int)wc.vendor_err != reason)
        die("status %d reason %u instead of %d and %d", wc.status, wc.vendor_err, status, reason);
}

static void send_one(struct side *side, const struct row *row)
{
    const struct address *peer = &side->meeting->addresses[!side->self];
    struct ibv_sge sge = {(uintptr_t)side->memory, row->length, side->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = row->opcode, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (row->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = peer->memory;
        wr.wr.atomic.rkey = peer->rkey;
    } else {
        wr.wr.rdma.remote_addr = peer->memory;
        wr.wr.rdma.rkey = peer->rkey;
    }
    if (ibv_post_send(side->qp, &wr, &bad))
        die("ibv_post_send fails");
    expect(side, row->status, row->reason);
}

static void post_receive(struct side *side, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, length, side->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

static void live(struct meeting *meeting, int self, const char *host, const struct row *row)
{
    static struct side side;
    side.meeting = meeting;
    side.self = self;
    side.memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    endpoint_go_to(host);
    endpoint_open(&side.endpoint, 4);
    side.mr = endpoint_register(&side.endpoint, side.memory, ROOM);
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, 1, 1);
    meeting->addresses[self] = endpoint_address(&side.endpoint, side.qp, side.mr);
    meet(&side, 1);
    if (self == RECEIVER)
        post_receive(&side, row->length);
    endpoint_connect(side.qp, &meeting->addresses[!self], TIMEOUT);
    if (self == row->loser)
        lose(&side, row->length);
    meet(&side, 2);
    if (self == SENDER)
        send_one(&side, row);
    else if (row->receive_status != QUIET)
        expect(&side, row->receive_status, row->receive_reason);
    meet(&side, 3);
    exit(0);
}

static int run_row(struct meeting *meeting, char **hosts, const struct row *row)
{
    int bad = 0;
    meeting->stages[0] = meeting->stages[1] = 0;
    for (int self = 0; self < 2; self++)
        if (!fork())
            live(meeting, self, hosts[self], row);
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
    if (argc != 3 || meeting == MAP_FAILED)
        die("Usage: gone HOST HOST");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (run_row(meeting, argv + 1, &rows[i]))
            die("row %u ends badly", i);
    return 0;
}
