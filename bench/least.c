/* READs and WRITEs of 8 bytes with the checks of softverbs and nothing else of it: the judgements by what the other
 * process publishes, the announcement of a WRITE, and the system call (src/link/direct.c), between a lock, a slot of
 * work and a completion that is polled. Beside it the system call alone, and a READ by pread(2) of /proc/PID/mem with
 * the same judgements, whose descriptor is proved by the position of its file; all in turn. That is the bound of
 * docs/evidence/one-sided.md. Usage: least [LINES]. Prints microseconds, the medians of all: the call to read, a READ,
 * a READ by the descriptor, the call to write, a WRITE.
 *
 * Each READ or WRITE runs LINES (0, 32, 64 or 96; 0 unless given) more lines of the cache with code, of nine
 * instructions each. A library for queue pairs, keys and completion queues of all kinds has more of them than
 * this program. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link/direct.h"
#include "measure.h"

enum { KEY = 0x1234501, NUMBER = 0x777, PEER = 0x888, DOMAIN = 5, WORDS = 512, TURNS = 30, OPS = 3000, ENTRIES = 64 };
enum kind { READ_CALL, READ_LEAST, READ_DESCRIPTOR, WRITE_CALL, WRITE_LEAST, KINDS };

/* No other file has this position: only this program seeks in this one. */
#define POSITION INT64_C(0x2d5a71c3498fe60b)

static uint64_t memory[WORDS] __attribute__((aligned(4096)));

/* The parts of a work request that a program gives, and of a completion that it gets. */
struct least_work {
    uint64_t id, address, remote;
    uint32_t length, key;
    bool write;
};

struct least_completion {
    uint64_t id;
    uint32_t status, length;
};

struct least {
    atomic_bool locked;
    struct published peer;
    pid_t pid;
    int descriptor; /* of the other's memory */
    struct direct_desk desk;
    struct direct_seats *seats;
    struct least_work slots[ENTRIES];
    struct least_completion ring[ENTRIES];
    atomic_uint posted, completed, polled;
};

static void be_other(struct published *published, int ready)
{
    const struct published_key key = {.access = PUBLISHED_WRITE | PUBLISHED_READ,
                                      .domain = DOMAIN,
                                      .base = (uintptr_t)memory,
                                      .length = sizeof memory,
                                      .memory = (uintptr_t)memory};
    const struct published_queue_pair queue_pair = {.peer = PEER,
                                                    .access = PUBLISHED_WRITE | PUBLISHED_READ,
                                                    .first_psn = 3,
                                                    .peer_psn = 4,
                                                    .max_dest_rd_atomic = 1,
                                                    .domain = DOMAIN};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    measure_pin(0);
    memory[0] = 1;
    published_open(published, true);
    published_vouch(published);
    bool is = published_key(published, KEY, &key) && published_queue_pair(published, NUMBER, &queue_pair);
    if (!is || write(ready, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static struct published_question question_of(const struct least_work *work)
{
    return (struct published_question){.write = work->write,
                                       .number = NUMBER,
                                       .own_number = PEER,
                                       .first_psn = 3,
                                       .own_psn = 4,
                                       .key = work->key,
                                       .address = work->remote,
                                       .length = work->length,
                                       .max_rd_atomic = !work->write};
}

/* A program may have closed the descriptor and opened another file under its number: then the position is another. */
static bool read_by_descriptor(struct least *least, const struct direct_access *access)
{
    uint64_t at, again;
    if (!published_permits(&least->peer, &access->question, &at) ||
        pread(least->descriptor, access->pieces->iov_base, access->pieces->iov_len, (off_t)at) !=
            (ssize_t)access->pieces->iov_len ||
        lseek(least->descriptor, 0, SEEK_CUR) != POSITION)
        return false;
    return published_permits(&least->peer, &access->question, &again) && again == at;
}

static bool least_do(struct least *least, const struct direct_access *access, enum kind kind)
{
    return kind == READ_DESCRIPTOR
               ? read_by_descriptor(least, access)
               : direct_do(&least->desk, least->seats, &least->peer, least->pid, access) == DIRECT_DONE;
}

static bool least_post(struct least *least, const struct least_work *asked, enum kind kind)
{
    while (atomic_exchange(&least->locked, true))
        ;
    unsigned at = atomic_load_explicit(&least->posted, memory_order_relaxed) % ENTRIES;
    struct least_work *work = &least->slots[at];
    *work = *asked;
    struct iovec piece = {(void *)(uintptr_t)work->address, work->length};
    struct direct_access access = {question_of(work), &piece, 1, NULL, 0};
    bool done = least_do(least, &access, kind);
    least->ring[at] = (struct least_completion){work->id, !done, work->length};
    atomic_fetch_add_explicit(&least->posted, 1, memory_order_relaxed);
    atomic_store_explicit(&least->completed, atomic_load(&least->posted), memory_order_release);
    atomic_store_explicit(&least->locked, false, memory_order_release);
    return done;
}

static int least_poll(struct least *least, struct least_completion *out)
{
    unsigned at = atomic_load_explicit(&least->polled, memory_order_relaxed);
    if (at == atomic_load_explicit(&least->completed, memory_order_acquire))
        return 0;
    *out = least->ring[at % ENTRIES];
    atomic_store_explicit(&least->polled, at + 1, memory_order_release);
    return 1;
}

static void no_lines(void)
{
}

#ifdef __x86_64__
#define LINES(count)                                                                                                   \
    static void lines_##count(void)                                                                                    \
    {                                                                                                                  \
        __asm__ volatile(".balign 64\n\t.rept " #count "\n\t"                                                          \
                         "add $1,%%rax\n\tadd $1,%%rcx\n\tadd $1,%%rdx\n\tadd $1,%%rsi\n\t"                            \
                         "add $1,%%rax\n\tadd $1,%%rcx\n\tadd $1,%%rdx\n\tadd $1,%%rsi\n\t"                            \
                         "jmp 1f\n\t.balign 64\n1:\n\t.endr" ::                                                        \
                             : "rax", "rcx", "rdx", "rsi", "cc");                                                      \
    }
#else
#define LINES(count)                                                                                                   \
    static void lines_##count(void)                                                                                    \
    {                                                                                                                  \
    }
#endif
LINES(32)
LINES(64)
LINES(96)

typedef void code(void);

static code *code_of(int lines)
{
    return lines >= 96 ? lines_96 : lines >= 64 ? lines_64 : lines >= 32 ? lines_32 : no_lines;
}

static void do_least(struct least *least, enum kind kind, code *more)
{
    static uint64_t id;
    struct least_completion completion;
    struct least_work work = {++id, (uintptr_t)&memory[64], (uintptr_t)&memory[0], sizeof *memory,
                              KEY,  kind == WRITE_LEAST};
    more();
    if (!least_post(least, &work, kind) || !least_poll(least, &completion) || completion.id != id || completion.status)
        exit(1);
}

static void do_call(const struct least *least, enum kind kind)
{
    struct iovec local = {&memory[64], sizeof *memory}, remote = {&memory[0], sizeof *memory};
    ssize_t done = kind == WRITE_CALL ? process_vm_writev(least->pid, &local, 1, &remote, 1, 0)
                                      : process_vm_readv(least->pid, &local, 1, &remote, 1, 0);
    if (done != sizeof *memory)
        exit(1);
}

static double samples[KINDS][TURNS * OPS];

static void measure_one(struct least *least, enum kind kind, code *more, double *sample)
{
    double start = measure_seconds();
    if (kind == READ_CALL || kind == WRITE_CALL)
        do_call(least, kind);
    else
        do_least(least, kind, more);
    *sample = measure_seconds() - start;
}

static void measure(struct least *least, code *more)
{
    for (int turn = 0; turn < TURNS; turn++)
        for (enum kind kind = 0; kind < KINDS; kind++)
            for (int op = 0; op < OPS; op++)
                measure_one(least, kind, more, &samples[kind][turn * OPS + op]);
    for (enum kind kind = 0; kind < KINDS; kind++)
        printf("%.4f%c", measure_median(samples[kind], (size_t)TURNS * OPS) * 1e6, kind + 1 == KINDS ? '\n' : ' ');
}

static int open_memory(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    return descriptor >= 0 && lseek(descriptor, POSITION, SEEK_SET) == POSITION ? descriptor : -1;
}

int main(int argc, char **argv)
{
    static struct least least;
    struct published published;
    int ready[2];
    char byte;
    least.seats = mmap(NULL, sizeof *least.seats, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (least.seats == MAP_FAILED || published_create(&published) || pipe(ready))
        return 1;
    least.pid = fork();
    if (least.pid == 0)
        be_other(&published, ready[1]);
    measure_pin(1);
    if (least.pid < 0 || published_map(&least.peer, published.descriptor) || read(ready[0], &byte, 1) != 1 ||
        (least.descriptor = open_memory(least.pid)) < 0) {
        fprintf(stderr, "least: the other process cannot be read here\n");
        return 1;
    }
    measure(&least, code_of(argc > 1 ? atoi(argv[1]) : 0));
    kill(least.pid, SIGKILL);
    return 0;
}
