/* SENDs, WRITEs and READs of 8 bytes between two processes of a host, to a side that polls its completion queue, to one
 * that only looks at its memory, and to one that alternates; and the system call alone, made by the same program. All
 * in turn, each time by two new processes, as the library remembers how often a program has alternated. Usage: ways
 * [NAME...]. Prints a line for each: its name and the microseconds of a message one way, of a READ there and back, the
 * median of all and their mean: the medians of the turns. Late works of a program that alternates are in the mean
 * alone. */
#include <sched.h>
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

enum {
    TURNS = 7,
    OPS_MOST = 20000,
    DEPTH = 128,
    SIGNALLED_EACH = 16,
    SIZE = 4096,
    OWN = 0,
    THEIRS = 64,
    YIELDS_EACH = 1 << 14
};

/* A side polls, or looks at its memory. `alternates`: the number of works after which it changes; 0: `polls` decides,
 * always. `calls`: process_vm_writev or process_vm_readv in the place of the WRITE or READ. */
struct mode {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool polls;
    uint32_t alternates;
    bool calls;
};

static const struct mode modes[] = {
    {"send", IBV_WR_SEND, true, 0},
    {"write-polls", IBV_WR_RDMA_WRITE, true, 0},
    {"write-looks", IBV_WR_RDMA_WRITE, false, 0},
    {"write-call", IBV_WR_RDMA_WRITE, false, 0, true},
    {"write-100", IBV_WR_RDMA_WRITE, true, 100},
    {"write-1000", IBV_WR_RDMA_WRITE, true, 1000},
    {"write-10000", IBV_WR_RDMA_WRITE, true, 10000},
    {"read-polls", IBV_WR_RDMA_READ, true, 0},
    {"read-looks", IBV_WR_RDMA_READ, false, 0},
    {"read-call", IBV_WR_RDMA_READ, false, 0, true},
    {"read-100", IBV_WR_RDMA_READ, true, 100},
    {"read-1000", IBV_WR_RDMA_READ, true, 1000},
    {"read-10000", IBV_WR_RDMA_READ, true, 10000},
};
enum { MODES = sizeof modes / sizeof *modes };

/* Seen by all processes. */
struct shared {
    atomic_uint done;    /* READs */
    double median, mean; /* of one, in microseconds */
};
static struct shared *shared;

struct side {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct address peer;
    _Atomic uint64_t *memory;
    pid_t other;
    uint32_t posted, received;
};

static void post_receive(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory + SIZE / 2, 8, side->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side->qp, &wr, &bad))
        die("a receive is refused");
}

/* The library's thread is there before, and may run on any processor. */
static void side_open(struct side *side, int nth, int to_other)
{
    pid_t self = getpid();
    endpoint_open(&side->endpoint, 2 * DEPTH);
    measure_pin(nth);
    side->memory = aligned_alloc(SIZE, SIZE);
    if (!side->memory)
        die("no memory");
    for (unsigned word = 0; word < SIZE / 8; word++)
        side->memory[word] = 0;
    side->mr = endpoint_register(&side->endpoint, side->memory, SIZE);
    side->qp = endpoint_create_qp(&side->endpoint, IBV_QPT_RC, DEPTH, DEPTH);
    struct address own = endpoint_address(&side->endpoint, side->qp, side->mr);
    if (write(to_other, &own, sizeof own) != sizeof own || read(to_other, &side->peer, sizeof own) != sizeof own)
        die("the other side is gone");
    endpoint_connect(side->qp, &side->peer, 14);
    for (unsigned i = 0; i < DEPTH / 2; i++)
        post_receive(side);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (write(to_other, &self, sizeof self) != sizeof self || read(to_other, &side->other, sizeof self) != sizeof self)
        die("the other side is gone");
}

/* Returns true if a work that was posted has ended. */
static bool poll_once(struct side *side)
{
    struct ibv_wc wc;
    int count = ibv_poll_cq(side->endpoint.cq, 1, &wc);
    if (count < 0 || (count && wc.status))
        die("a request fails");
    if (count && wc.opcode == IBV_WC_RECV) {
        side->received++;
        post_receive(side);
    }
    return count && wc.opcode != IBV_WC_RECV;
}

static void post(struct side *side, enum ibv_wr_opcode opcode, uint64_t value)
{
    bool reads = opcode == IBV_WR_RDMA_READ, signalled = reads || ++side->posted % SIGNALLED_EACH == 0;
    struct ibv_sge sge = {(uintptr_t)&side->memory[OWN], 8, side->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    side->memory[OWN] = value;
    wr.send_flags = (signalled ? IBV_SEND_SIGNALED : 0) | (reads ? 0 : IBV_SEND_INLINE);
    wr.wr.rdma.remote_addr = side->peer.memory + THEIRS * 8;
    wr.wr.rdma.rkey = side->peer.rkey;
    if (ibv_post_send(side->qp, &wr, &bad))
        die("a request is refused");
    if (!signalled)
        return;
    while (!poll_once(side))
        ;
}

static void call(struct side *side, enum ibv_wr_opcode opcode, uint64_t value)
{
    struct iovec local = {(void *)&side->memory[OWN], 8},
                 remote = {(void *)(uintptr_t)(side->peer.memory + THEIRS * 8), 8};
    side->memory[OWN] = value;
    ssize_t done = opcode == IBV_WR_RDMA_READ ? process_vm_readv(side->other, &local, 1, &remote, 1, 0)
                                              : process_vm_writev(side->other, &local, 1, &remote, 1, 0);
    if (done != 8)
        die("the system does not copy between processes");
}

static void do_one(struct side *side, const struct mode *mode, uint64_t value)
{
    if (mode->calls)
        call(side, mode->opcode, value);
    else
        post(side, mode->opcode, value);
}

/* Looks once at memory, or at completions. A program that looks yields its processor to the library's thread now and
 * then, as it must under a real-time policy (chrt -f 5). */
static void look(struct side *side, bool polls)
{
    static unsigned looks;
    if (polls)
        poll_once(side);
    else if (++looks % YIELDS_EACH == 0)
        sched_yield();
}

static bool polls_now(const struct mode *mode, uint32_t done)
{
    return mode->alternates ? done / mode->alternates % 2 == 0 : mode->polls;
}

/* Until the other side's message of this number is here. */
static void await(struct side *side, const struct mode *mode, uint32_t number, uint64_t value)
{
    uint32_t received = side->received;
    bool polls = polls_now(mode, number);
    if (mode->opcode == IBV_WR_SEND)
        while (side->received == received)
            poll_once(side);
    else
        while (atomic_load_explicit(&side->memory[THEIRS], memory_order_acquire) != value)
            look(side, polls);
}

static double samples[OPS_MOST];
static unsigned ops; /* of each turn */

/* Each message is answered by the other side with the same. */
static void ping_pong(struct side *side, const struct mode *mode)
{
    for (uint32_t number = 0; number < ops; number++) {
        double start = measure_seconds();
        do_one(side, mode, number + 1);
        await(side, mode, number, number + 1);
        samples[number] = (measure_seconds() - start) / 2;
    }
}

static void answer(struct side *side, const struct mode *mode)
{
    for (uint32_t number = 0; number < ops; number++) {
        await(side, mode, number, number + 1);
        do_one(side, mode, number + 1);
    }
}

static void be_read(struct side *side, const struct mode *mode)
{
    for (;;) {
        uint32_t done = atomic_load_explicit(&shared->done, memory_order_relaxed);
        if (done >= ops)
            return;
        look(side, polls_now(mode, done));
    }
}

/* Does all READs and counts them for the other side only now and then: a store for each would be a part of what is
 * measured. */
static void read_all(struct side *side, const struct mode *mode)
{
    uint32_t each = mode->alternates ? mode->alternates : ops;
    for (uint32_t done = 0; done < ops; done++) {
        if (done % each == 0)
            atomic_store(&shared->done, done);
        double start = measure_seconds();
        do_one(side, mode, 0);
        samples[done] = measure_seconds() - start;
    }
    atomic_store(&shared->done, ops);
}

static void be_target(const struct mode *mode, int to_other)
{
    static struct side side;
    side_open(&side, 0, to_other);
    if (mode->opcode == IBV_WR_RDMA_READ)
        be_read(&side, mode);
    else
        answer(&side, mode);
}

static void be_requester(const struct mode *mode, int to_other)
{
    static struct side side;
    bool reads = mode->opcode == IBV_WR_RDMA_READ;
    side_open(&side, 1, to_other);
    double start = measure_seconds();
    if (reads)
        read_all(&side, mode);
    else
        ping_pong(&side, mode);
    double mean = (measure_seconds() - start) / ops / (reads ? 1 : 2);
    shared->mean = mean * 1e6;
    shared->median = measure_median(samples, ops) * 1e6;
}

typedef void role(const struct mode *, int to_other);

static pid_t start(role *run, const struct mode *mode, int to_other)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(mode, to_other);
    char through = 0;
    if (write(to_other, &through, 1) != 1 || read(to_other, &through, 1) != 1)
        die("the other side is gone");
    _exit(0);
}

static void take_turn(const struct mode *mode, double *median, double *mean)
{
    int sockets[2], status[2];
    atomic_store(&shared->done, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        die("no socket");
    pid_t target = start(be_target, mode, sockets[0]), requester = start(be_requester, mode, sockets[1]);
    close(sockets[0]);
    close(sockets[1]);
    if (waitpid(requester, &status[0], 0) != requester || waitpid(target, &status[1], 0) != target || status[0] ||
        status[1])
        die("%s: a process fails", mode->name);
    *median = shared->median;
    *mean = shared->mean;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    static double medians[MODES][TURNS], means[MODES][TURNS];
    ops = measure_rounds(OPS_MOST);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("no memory");
    for (unsigned turn = 0; turn < TURNS; turn++)
        for (unsigned mode = 0; mode < MODES; mode++)
            if (is_wanted(modes[mode].name, argc, argv))
                take_turn(&modes[mode], &medians[mode][turn], &means[mode][turn]);
    for (unsigned mode = 0; mode < MODES; mode++)
        if (is_wanted(modes[mode].name, argc, argv))
            printf("%s %.4f %.4f\n", modes[mode].name, measure_median(medians[mode], TURNS),
                   measure_median(means[mode], TURNS));
    return 0;
}
