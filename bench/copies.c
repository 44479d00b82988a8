/* READs or WRITEs within a host beside the system call that does them, on the same memory of the same two processes, in
 * turn: all else (the places of the pages, the processor that has touched them, the machine's load) is the same for
 * both. Usage: copies read|write BYTES. Prints 10^9 bytes each second of softverbs, of process_vm_readv or
 * process_vm_writev, and of that call with the pieces that softverbs gives it (docs/evidence/one-sided.md: the last 8
 * bytes apart): the medians of the turns. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "measure.h"

enum { TURNS_MOST = 101, TURN_BYTES = 1 << 26, DEPTH = 16, PAGE = 4096 };

struct side {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct address peer;
};

static void *memory_of(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("no memory");
    memset(memory, 1, size);
    return memory;
}

/* Opens a side; the other does the same. They exchange addresses, and each then reports that it is connected. */
static void side_open(struct side *side, size_t size, int to_other)
{
    char connected = 0;
    endpoint_open(&side->endpoint, DEPTH);
    side->mr = endpoint_register(&side->endpoint, memory_of(size + PAGE), size);
    side->qp = endpoint_create_qp(&side->endpoint, IBV_QPT_RC, DEPTH, 1);
    struct address own = endpoint_address(&side->endpoint, side->qp, side->mr);
    if (write(to_other, &own, sizeof own) != sizeof own || read(to_other, &side->peer, sizeof own) != sizeof own)
        die("the other side is gone");
    endpoint_connect(side->qp, &side->peer, 14);
    if (write(to_other, &connected, 1) != 1 || read(to_other, &connected, 1) != 1)
        die("the other side is gone");
}

static pid_t start_target(size_t size, int sockets[2])
{
    pid_t pid = fork();
    if (pid)
        return pid;
    static struct side side;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    measure_pin(0);
    side_open(&side, size, sockets[1]);
    for (;;)
        pause();
}

static double turn_of_verbs(struct side *side, enum ibv_wr_opcode opcode, size_t size)
{
    struct ibv_sge sge = {(uintptr_t)side->mr->addr, (uint32_t)size, side->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.rdma.remote_addr = side->peer.memory;
    wr.wr.rdma.rkey = side->peer.rkey;
    double start = measure_seconds();
    for (size_t done = 0; done < TURN_BYTES; done += size) {
        struct ibv_wc wc;
        int count;
        if (ibv_post_send(side->qp, &wr, &bad))
            die("a request is refused");
        do
            count = ibv_poll_cq(side->endpoint.cq, 1, &wc);
        while (!count);
        if (count < 0 || wc.status)
            die("a request fails");
    }
    return measure_seconds() - start;
}

/* Copies the last 8 bytes as a separate piece of the same call. */
static ssize_t copy_in_pieces(struct side *side, pid_t target, bool reads, size_t size)
{
    char *own = side->mr->addr;
    struct iovec local[] = {{own, size - 8}, {own + size - 8, 8}};
    struct iovec remote = {(void *)(uintptr_t)side->peer.memory, size};
    return (reads ? process_vm_readv : process_vm_writev)(target, local, 2, &remote, 1, 0);
}

static ssize_t copy_plainly(struct side *side, pid_t target, bool reads, size_t size)
{
    struct iovec local = {side->mr->addr, size}, remote = {(void *)(uintptr_t)side->peer.memory, size};
    return (reads ? process_vm_readv : process_vm_writev)(target, &local, 1, &remote, 1, 0);
}

typedef ssize_t copier(struct side *, pid_t, bool, size_t);

static double turn_of_calls(struct side *side, pid_t target, bool reads, size_t size, copier *copy)
{
    double start = measure_seconds();
    for (size_t done = 0; done < TURN_BYTES; done += size)
        if (copy(side, target, reads, size) != (ssize_t)size)
            die("the system does not copy between processes");
    return measure_seconds() - start;
}

/* The first turn of each warms up. */
static void measure(struct side *side, pid_t target, bool reads, size_t size)
{
    static double verbs[TURNS_MOST], plain[TURNS_MOST], pieces[TURNS_MOST];
    int turns = (int)measure_rounds(TURNS_MOST);
    for (int turn = -1; turn < turns; turn++) {
        int at = turn < 0 ? 0 : turn;
        verbs[at] = TURN_BYTES / turn_of_verbs(side, reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, size) / 1e9;
        plain[at] = TURN_BYTES / turn_of_calls(side, target, reads, size, copy_plainly) / 1e9;
        pieces[at] = TURN_BYTES / turn_of_calls(side, target, reads, size, copy_in_pieces) / 1e9;
    }
    printf("%.4f %.4f %.4f\n", measure_median(verbs, (size_t)turns), measure_median(plain, (size_t)turns),
           measure_median(pieces, (size_t)turns));
}

int main(int argc, char **argv)
{
    size_t size = argc == 3 ? (size_t)atol(argv[2]) : 0;
    bool reads = argc == 3 && !strcmp(argv[1], "read");
    int sockets[2];
    if (size <= 8 || size > TURN_BYTES || (!reads && strcmp(argv[1], "write")))
        die("usage: copies read|write BYTES");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        die("no socket");
    pid_t target = start_target(size, sockets);
    static struct side side;
    measure_pin(1);
    side_open(&side, size, sockets[0]);
    measure(&side, target, reads, size);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    return 0;
}
