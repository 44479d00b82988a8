/* Long WRITEs that requesters do by themselves, nearly always one at a time, against an owner that takes its memory
 * back. Usage: long_writes MODE [ROUNDS]
 *
 *   unlocked  the writer closes all descriptors, also its lock's in the host's table, and so looks as if it were dead:
 *             no byte changes once ibv_dereg_mr has returned
 *   many      80 writers at once: ibv_dereg_mr returns, also of memory that no writer writes to
 *   computes  a signal handler of the writer interrupts it, mostly within the WRITE, and computes for as long as the
 *             test lasts: ibv_dereg_mr returns, and no byte changes then
 *   claims    the writer says for ever that it is within WRITEs, and computes: ibv_dereg_mr returns
 *
 * Exit status 0, or 1 with a sentence. */
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"
#include "link/ring_layout.h"

enum { WRITERS = 80, LENGTH = 1 << 20, TIMEOUT = 8 };

/* The steps of a writer: the owner's address is there, its own is there, its turn has come. */
enum { OWNER_THERE = 1, WRITER_THERE, BEGINS };

/* The memory that all processes share besides verbs. */
static struct stage {
    struct address owner[WRITERS], writer[WRITERS];
    atomic_uint told[WRITERS], ready, writing;
    unsigned writers;
} * stage;

static char memory[LENGTH];

enum mode { UNLOCKED, MANY, COMPUTES, CLAIMS };

/* Asleep, as those that wait must not take the processors from the one for which they wait. */
static void wait_until(atomic_uint *word, unsigned least)
{
    double until = now_seconds() + PATIENCE_MANY_SECONDS;
    for (unsigned now; (now = atomic_load(word)) < least;) {
        if (now_seconds() > until)
            die("the other side does not go on");
        syscall(SYS_futex, word, FUTEX_WAIT, now, &(struct timespec){.tv_sec = 1}, NULL, 0);
    }
}

static void set(atomic_uint *word, unsigned value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void add_one(atomic_uint *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool write_once(struct endpoint *endpoint, struct ibv_qp *qp, const struct ibv_mr *mr, const struct address *to)
{
    struct ibv_sge sge = {(uintptr_t)memory, LENGTH, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_wc wc;
    int count;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = to->memory;
    wr.wr.rdma.rkey = to->rkey;
    if (ibv_post_send(qp, &wr, &bad))
        die("ibv_post_send");
    do /* without descriptors there are no events */
        count = ibv_poll_cq(endpoint->cq, 1, &wc);
    while (!count);
    return count > 0 && wc.status == IBV_WC_SUCCESS;
}

static void close_all(void)
{
    for (int descriptor = 3; descriptor < 256; descriptor++)
        close(descriptor);
}

static void compute(int signal)
{
    for (volatile uint64_t i = 0;; i++)
        ;
}

/* In each ring that this process writes, as what it wrote last. */
static void claim_seats(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned claimed = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        char *end, *rights = strchr(line, ' ');
        struct ring_shared *shared = (void *)strtoul(line, &end, 16);
        if (!rights || !strstr(line, "/memfd:softverbs (") || strncmp(rights, " rw-s 00000000 ", 15) != 0)
            continue;
        for (unsigned i = 0; i < DIRECT_SEATS; i++)
            claimed += atomic_fetch_or(&shared->seats.at[i].taken, 1) % 2 == 0;
    }
    if (!claimed)
        die("there are no seats");
}

static struct ibv_qp *join(unsigned me, struct endpoint *endpoint, struct ibv_mr **mr)
{
    wait_until(&stage->told[me], OWNER_THERE);
    endpoint_open(endpoint, 4);
    struct ibv_qp *qp = endpoint_create_qp(endpoint, IBV_QPT_RC, 4, 1);
    *mr = endpoint_register(endpoint, memory, LENGTH);
    memset(memory, 0xff, LENGTH);
    stage->writer[me] = endpoint_address(endpoint, qp, *mr);
    endpoint_connect(qp, &stage->owner[me], TIMEOUT);
    set(&stage->told[me], WRITER_THERE);
    return qp;
}

/* The first WRITEs go as packets, for which the owner maps a ring. The kernel holds its memory for each WRITE of the
 * others that is under way, and so for as long as such a writer has no processor: rings that are made beside eighty
 * writers took minutes. So each begins alone, and writes on when all have. */
static void wait_for_others(unsigned me)
{
    if (me + 1 < stage->writers)
        set(&stage->told[me + 1], BEGINS);
    add_one(&stage->ready);
    wait_until(&stage->ready, stage->writers);
}

/* Until the key is gone. */
static void write_on(unsigned me, enum mode mode)
{
    enum { USUAL = 3 };
    struct endpoint endpoint;
    struct ibv_mr *mr;
    struct ibv_qp *qp = join(me, &endpoint, &mr);
    wait_until(&stage->told[me], BEGINS);
    for (unsigned i = 0; write_once(&endpoint, qp, mr, &stage->owner[me]); i++) {
        if (i == USUAL && mode == UNLOCKED)
            close_all();
        if (i == USUAL && mode == CLAIMS)
            claim_seats();
        if (i == USUAL)
            wait_for_others(me);
        if (i == USUAL + (mode != CLAIMS))
            add_one(&stage->writing);
        if (i == USUAL && mode == CLAIMS)
            compute(0);
    }
}

/* Returns the number of the last. */
static pid_t start_writers(unsigned count, enum mode mode)
{
    pid_t last = 0;
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stage->writers = count;
    for (unsigned i = 0; i < count; i++)
        if (!(last = fork())) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            signal(SIGUSR1, compute);
            write_on(i, mode);
            _exit(0);
        }
    return last;
}

/* Returns when all of them have begun to write. */
static struct ibv_mr *let_write(struct endpoint *endpoint, unsigned count)
{
    struct ibv_qp *queue_pairs[WRITERS];
    struct ibv_mr *mr = endpoint_register(endpoint, memory, LENGTH);
    for (unsigned i = 0; i < count; i++) {
        queue_pairs[i] = endpoint_create_qp(endpoint, IBV_QPT_RC, 1, 1);
        stage->owner[i] = endpoint_address(endpoint, queue_pairs[i], mr);
        set(&stage->told[i], OWNER_THERE);
    }
    for (unsigned i = 0; i < count; i++) {
        wait_until(&stage->told[i], WRITER_THERE);
        endpoint_connect(queue_pairs[i], &stage->writer[i], TIMEOUT);
    }
    set(&stage->told[0], BEGINS);
    wait_until(&stage->writing, count);
    return mr;
}

static void take_back(struct ibv_mr *mr)
{
    double before = now_seconds();
    if (ibv_dereg_mr(mr))
        die("ibv_dereg_mr");
    if (now_seconds() - before > PATIENCE_SECONDS)
        die("ibv_dereg_mr took %.0f s", now_seconds() - before);
}

static void expect_untouched(void)
{
    for (double until = now_seconds() + 0.005; now_seconds() < until;)
        for (size_t i = 0; i < LENGTH; i += 4096)
            if (((volatile char *)memory)[i])
                die("memory was written after it had been taken back");
}

static int own_unlocked(void)
{
    struct endpoint endpoint;
    start_writers(1, UNLOCKED);
    endpoint_open(&endpoint, 4);
    take_back(let_write(&endpoint, 1));
    memset(memory, 0, LENGTH);
    expect_untouched();
    return 0;
}

/* New processes for each round, as a writer has no descriptors afterwards. */
static int run_unlocked(unsigned rounds)
{
    int status = 0;
    for (unsigned round = 0; round < rounds && !status; round++) {
        pid_t owner = fork();
        if (!owner)
            _exit(own_unlocked());
        if (waitpid(owner, &status, 0) != owner)
            return 1;
    }
    return status != 0;
}

static int run_many(void)
{
    static char elsewhere[4096];
    struct endpoint endpoint;
    start_writers(WRITERS, MANY);
    endpoint_open(&endpoint, 4);
    struct ibv_mr *other = endpoint_register(&endpoint, elsewhere, sizeof elsewhere);
    struct ibv_mr *mr = let_write(&endpoint, WRITERS);
    take_back(other);
    take_back(mr);
    return 0;
}

/* A new process for each round, which takes its writer along. */
static int own_computing(enum mode mode)
{
    struct endpoint endpoint;
    pid_t writer = start_writers(1, mode);
    endpoint_open(&endpoint, 4);
    struct ibv_mr *mr = let_write(&endpoint, 1);
    if (mode == COMPUTES)
        kill(writer, SIGUSR1);
    usleep(2000); /* the writer computes, within or after its call */
    take_back(mr);
    memset(memory, 0, LENGTH);
    expect_untouched();
    return 0;
}

static int run_computing(enum mode mode, unsigned rounds)
{
    int status = 0;
    for (unsigned round = 0; round < rounds && !status; round++) {
        pid_t owner = fork();
        if (!owner) {
            alarm((unsigned)PATIENCE_MANY_SECONDS);
            _exit(own_computing(mode));
        }
        if (waitpid(owner, &status, 0) != owner)
            return 1;
    }
    if (status)
        die("ibv_dereg_mr waits for ever");
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "unlocked"))
        return run_unlocked(argc > 2 ? (unsigned)atoi(argv[2]) : 20);
    if (!strcmp(mode, "many"))
        return run_many();
    if (!strcmp(mode, "computes"))
        return run_computing(COMPUTES, argc > 2 ? (unsigned)atoi(argv[2]) : 2);
    if (!strcmp(mode, "claims"))
        return run_computing(CLAIMS, 1);
    die("usage: long_writes unlocked|many|computes|claims [ROUNDS]");
}
