/* Memory that is registered and gone, between two hosts: both processes live on and see the error that the operation
 * has. Usage: gone HOST HOST (hosts: names for ip-netns(8)). Each row is a process on each host. */
#include <sys/mman.h>

#include "base/testing/patience.h"
#include "pair.h"

enum { ROOM = 65536, TIMEOUT = 16, QUIET = -1 };

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

struct run {
    struct meeting meeting;
    char **hosts;
    const struct row *row;
};

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
    const struct address *peer = side_peer(side);
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

static void live(int self, void *argument)
{
    struct run *run = argument;
    const struct row *row = run->row;
    struct side side;
    side_open(&side, &run->meeting, self, run->hosts[self], ROOM, 1);
    side.length = row->length;
    if (self == RECEIVER)
        side_receive(&side);
    side_connect(&side, TIMEOUT);
    if (self == row->loser)
        lose(&side, row->length);
    side_meet(&side, 2);
    if (self == SENDER)
        send_one(&side, row);
    else if (row->receive_status != QUIET)
        expect(&side, row->receive_status, row->receive_reason);
    side_meet(&side, 3);
}

int main(int argc, char **argv)
{
    struct run *run = pair_share(sizeof *run);
    if (argc != 3)
        die("Usage: gone HOST HOST");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        *run = (struct run){.hosts = argv + 1, .row = &rows[i]};
        if (pair_run(live, run))
            die("row %u ends badly", i);
    }
    return 0;
}
