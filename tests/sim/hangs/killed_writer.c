/* A writer is killed, perhaps within a WRITE; another process opens the device in its place; then the owner of the
 * memory takes it back. Usage: killed_writer BYTES */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum { OPEN = 1, CONNECTED, TIMEOUT = 14, USUAL = 3, MOST = 300 };

struct shared {
    struct meeting meeting;
    atomic_uint written, taken;
};

static struct shared *shared;

static void write_once(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory, side->length, side->mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = side_peer(side)->memory;
    wr.wr.rdma.rkey = side_peer(side)->rkey;
    if (ibv_post_send(side->qp, &wr, &bad))
        die("ibv_post_send");
    side_poll(side, "a WRITE");
}

/* The first WRITEs go as packets. */
static void write_on(uint32_t length)
{
    struct side side;
    side_open(&side, &shared->meeting, SENDER, NULL, length, 4);
    side_connect(&side, TIMEOUT);
    side_meet(&side, CONNECTED);
    for (int i = 0; i < MOST; i++) {
        write_once(&side);
        atomic_fetch_add(&shared->written, 1);
    }
    for (;;)
        pause();
}

static void take_place(void)
{
    struct endpoint endpoint;
    endpoint_open(&endpoint, 1);
    atomic_store(&shared->taken, 1);
    for (;;)
        pause();
}

static void wait_for(atomic_uint *word, unsigned least)
{
    while (atomic_load(word) < least)
        usleep(50);
}

static pid_t start(void (*live)(uint32_t), uint32_t length)
{
    pid_t child = fork();
    if (!child)
        live(length);
    return child;
}

static void take_place_of(uint32_t length)
{
    (void)length;
    take_place();
}

int main(int argc, char **argv)
{
    uint32_t length = argc > 1 ? (uint32_t)atoi(argv[1]) : 1 << 20;
    struct side side;
    shared = pair_share(sizeof *shared);
    pid_t writer = start(write_on, length);
    side_open(&side, &shared->meeting, RECEIVER, NULL, length, 4);
    side_connect(&side, TIMEOUT);
    side_meet(&side, CONNECTED);
    wait_for(&shared->written, USUAL);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    pid_t next = start(take_place_of, length);
    wait_for(&shared->taken, 1);
    int error = ibv_dereg_mr(side.mr);
    kill(next, SIGKILL);
    waitpid(next, NULL, 0);
    return error;
}
