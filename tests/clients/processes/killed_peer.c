/* Two processes exchange sends, writes and reads over RC; one of them is killed at a random moment; what the other
 * sees. Usage: death [ROUNDS [SEED]]. In each round the survivor must get an error completion within its timeout, then
 * one completion for everything else that it had posted, and must be able to tear everything down. Prints a summary;
 * exit status 1 when a survivor hung, or saw something else. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum {
    DEPTH = 16,
    LONGEST = 256 << 10,
    TIMEOUT = 12,     /* 4.096 us * 2^12 is 17 ms, four times 67 ms */
    LATEST_KILL = 60, /* ms after the start */
    DETECTED = 3000,  /* ms after which the death is known, on a machine of few cores, busy with others */
    BEFORE = 10,      /* exit status: the other died before there was a connection */
    AFTER = 11,       /* the other died during the traffic, and all was as it should be */
};

/* One side. Work request numbers below DEPTH are receives. */
struct side {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct address theirs;
    unsigned sends, receives; /* outstanding */
    unsigned long posted;
};

static double *killed_at; /* shared with the parent: when, or 0 */

static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

/* False: the other is gone. */
static bool swap(int fd, const void *mine, void *theirs, size_t size)
{
    return send(fd, mine, size, MSG_NOSIGNAL) == (ssize_t)size && recv(fd, theirs, size, MSG_WAITALL) == (ssize_t)size;
}

static struct ibv_sge half(const struct side *side, bool upper, uint32_t size)
{
    return (struct ibv_sge){(uintptr_t)side->mr->addr + (upper ? LONGEST : 0), size, side->mr->lkey};
}

static void post_receive(struct side *side)
{
    struct ibv_sge sge = half(side, true, LONGEST);
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    errno = ibv_post_recv(side->qp, &wr, &bad);
    if (errno)
        die("ibv_post_recv fails");
    side->receives++;
}

/* Sends, writes and reads in turn, small and large in turn. */
static void post_next(struct side *side)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    static const uint32_t sizes[] = {8, LONGEST, 4096, 65536, 1};
    struct ibv_sge sge = half(side, false, sizes[side->posted % 5]);
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.opcode = opcodes[side->posted % 3];
    wr.wr.rdma.remote_addr = side->theirs.memory;
    wr.wr.rdma.rkey = side->theirs.rkey;
    errno = ibv_post_send(side->qp, &wr, &bad);
    if (errno)
        die("ibv_post_send fails");
    side->posted++;
    side->sends++;
}

static void count(struct side *side, const struct ibv_wc *wc)
{
    unsigned *outstanding = wc->wr_id ? &side->sends : &side->receives;
    if (!*outstanding)
        die("a completion for nothing");
    --*outstanding;
}

/* Works until a completion is a bad one, which must say that the other no longer answers. */
static void work_until_death(struct side *side)
{
    struct ibv_wc wc[DEPTH];
    for (;;) {
        while (side->receives < DEPTH)
            post_receive(side);
        while (side->sends < DEPTH)
            post_next(side);
        int found = endpoint_wait(&side->endpoint, wc, 1, patience(DETECTED) / 1e3);
        if (!found)
            die("hangs: no completion in %d ms; %s", patience(DETECTED),
                *killed_at ? "the other is dead" : "the other lives");
        count(side, wc);
        if (wc->status == IBV_WC_SUCCESS)
            continue;
        if (!*killed_at || (wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_WR_FLUSH_ERR))
            die("%s, reason %u, while the other %s", ibv_wc_status_str(wc->status), wc->vendor_err,
                *killed_at ? "is dead" : "lives");
        return;
    }
}

static void flush(struct side *side)
{
    struct ibv_wc wc;
    while (side->sends + side->receives) {
        if (!endpoint_wait(&side->endpoint, &wc, 1, patience(DETECTED) / 1e3))
            die("%u sends and %u receives never complete", side->sends, side->receives);
        count(side, &wc);
        if (wc.status == IBV_WC_SUCCESS && wc.wr_id)
            die("work succeeds after an error");
    }
    if (ibv_poll_cq(side->endpoint.cq, 1, &wc))
        die("more completions than work");
}

static void tear_down(struct side *side)
{
    if (ibv_destroy_qp(side->qp) || ibv_dereg_mr(side->mr))
        die("something is still in use after the death");
    endpoint_close(&side->endpoint);
}

static int live(int fd)
{
    static char memory[2 * LONGEST];
    struct side side = {.sends = 0};
    endpoint_open(&side.endpoint, 4 * DEPTH);
    side.mr = endpoint_register(&side.endpoint, memory, sizeof memory);
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, DEPTH, DEPTH);
    struct address mine = endpoint_address(&side.endpoint, side.qp, side.mr);
    bool connected = swap(fd, &mine, &side.theirs, sizeof mine);
    if (connected) {
        endpoint_connect(side.qp, &side.theirs, TIMEOUT);
        connected = swap(fd, &mine, &mine, 1);
    }
    if (connected) {
        work_until_death(&side);
        flush(&side);
    }
    tear_down(&side);
    return connected ? AFTER : BEFORE;
}

static pid_t start(const int fds[2], int which)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[!which]);
        exit(live(fds[which]));
    }
    return pid;
}

/* The survivor's exit status, or -1 when it hangs. */
static int await(pid_t pid)
{
    double deadline = now_seconds() + PATIENCE_SECONDS;
    for (int status; now_seconds() < deadline; usleep(500))
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return -1;
}

static int play_round(uint64_t *random, double *slowest)
{
    int fds[2], victim = (int)(next_random(random) & 1);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        die("no socket pair");
    *killed_at = 0;
    pid_t pids[] = {start(fds, 0), start(fds, 1)};
    close(fds[0]);
    close(fds[1]);
    usleep((useconds_t)(next_random(random) % (LATEST_KILL * 1000)));
    *killed_at = now_seconds();
    kill(pids[victim], SIGKILL);
    int status = await(pids[!victim]);
    waitpid(pids[victim], NULL, 0);
    double took = now_seconds() - *killed_at;
    if (took > *slowest)
        *slowest = took;
    return status;
}

/* The next process that joins sweeps what the dead have left. */
static void sweep(void)
{
    struct endpoint endpoint;
    endpoint_open(&endpoint, 1);
    endpoint_close(&endpoint);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200, before = 0, after = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)getpid(), random = seed;
    double slowest = 0;
    setlinebuf(stdout); /* nothing in the buffer when a process is forked */
    killed_at = mmap(NULL, sizeof *killed_at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (killed_at == MAP_FAILED)
        die("no shared memory");
    for (int round = 0; round < rounds; round++) {
        int status = play_round(&random, &slowest);
        before += status == BEFORE;
        after += status == AFTER;
        if (status != BEFORE && status != AFTER)
            printf("round %d of seed %llu: %s\n", round, (unsigned long long)seed,
                   status < 0 ? "the survivor hangs" : "failed");
    }
    sweep();
    printf("%d deaths: %d before the connection, %d during traffic, %d wrong; the slowest survivor ended after %.3f s; "
           "seed %llu\n",
           rounds, before, after, rounds - before - after, slowest, (unsigned long long)seed);
    return before + after != rounds;
}
