/* The limits of this machine itself, measured between two processes on two processors: the bounds of any
 * implementation. Usage: limits line | ring | word | look | walk | words | memcpy BYTES | readv BYTES | writev BYTES |
 * pieces BYTES. Prints one number:
 *
 * - line: microseconds that a cache line takes to the other process (half of a round trip)
 * - ring: millions of 64-byte messages each second through a ring in shared memory
 * - memcpy: 10^9 bytes each second that one processor copies
 * - readv: the same with process_vm_readv from the other process
 * - writev: the same with process_vm_writev into it
 * - pieces: the same as the pieces that a WRITE of softverbs has (docs/evidence/one-sided.md): the last 8 bytes apart
 * - words: millions of 8-byte pieces each second into it, 16 to a call
 * - word: microseconds that 8 bytes take to the other process's memory with process_vm_writev (half of a round trip,
 *   the median)
 * - look: microseconds of a process_vm_readv of 8 bytes (the median)
 * - walk: the same, where 128 lines of the cache with code were run through just before, as many as a library has */
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
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { LINE = 64, SLOTS = 1024, WORDS_MOST = 100000 };

static unsigned rounds, messages, word_count, calls; /* of what is measured */

static void count_rounds(void)
{
    rounds = measure_rounds(1000000);
    messages = measure_rounds(20000000);
    word_count = measure_rounds(WORDS_MOST);
    calls = measure_rounds(200000);
}

struct slot {
    _Atomic uint64_t turn;
    uint64_t words[LINE / 8 - 1];
} __attribute__((aligned(LINE)));

static struct slot *shared; /* SLOTS of them, seen by both processes; and one more for the consumer's position */

static void relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static pid_t start_other(void (*run)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        measure_pin(1);
        run();
        _exit(0);
    }
    measure_pin(0);
    return pid;
}

static void pass_line(uint64_t parity)
{
    for (uint64_t turn = parity; turn < 2 * (uint64_t)rounds; turn += 2) {
        while (atomic_load_explicit(&shared->turn, memory_order_acquire) != turn)
            relax();
        atomic_store_explicit(&shared->turn, turn + 1, memory_order_release);
    }
}

static void answer_line(void)
{
    pass_line(1);
}

static double measure_line(void)
{
    pid_t other = start_other(answer_line);
    double start = measure_seconds();
    pass_line(0);
    waitpid(other, NULL, 0);
    return (measure_seconds() - start) / (2.0 * rounds) * 1e6;
}

static void produce(void)
{
    uint64_t room = SLOTS;
    for (uint64_t i = 0; i < messages; i++) {
        while (i >= room)
            room = atomic_load_explicit(&shared[SLOTS].turn, memory_order_acquire) + SLOTS;
        struct slot *slot = &shared[i % SLOTS];
        slot->words[0] = i;
        atomic_store_explicit(&slot->turn, i + 1, memory_order_release);
    }
}

static double measure_ring(void)
{
    uint64_t sum = 0;
    pid_t other = start_other(produce);
    double start = measure_seconds();
    for (uint64_t i = 0; i < messages; i++) {
        struct slot *slot = &shared[i % SLOTS];
        while (atomic_load_explicit(&slot->turn, memory_order_acquire) != i + 1)
            relax();
        sum += slot->words[0];
        if (i % (SLOTS / 4) == 0)
            atomic_store_explicit(&shared[SLOTS].turn, i, memory_order_release);
    }
    double seconds = measure_seconds() - start;
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return sum == (uint64_t)messages * (messages - 1) / 2 ? messages / seconds / 1e6 : 0;
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

/* Passes a word like two programs that look at their memory: each writes into the other's. */
static void pass_word(pid_t other, uint64_t parity, double *samples)
{
    struct iovec local = {&(uint64_t){0}, 8}, remote = {&shared[parity].turn, 8};
    for (uint64_t turn = 0; turn < word_count; turn++) {
        double start = measure_seconds();
        for (int half = 0; half < 2; half++)
            if (half == (int)parity) {
                *(uint64_t *)local.iov_base = turn + 1;
                process_vm_writev(other, &local, 1, &remote, 1, 0);
            } else {
                while (atomic_load_explicit(&shared[1 - parity].turn, memory_order_acquire) != turn + 1)
                    relax();
            }
        samples[turn] = (measure_seconds() - start) / 2;
    }
}

static double samples[WORDS_MOST];

static void answer_word(void)
{
    pass_word(getppid(), 1, samples);
}

static double measure_word(void)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t other = start_other(answer_word);
    pass_word(other, 0, samples);
    waitpid(other, NULL, 0);
    return measure_median(samples, word_count) * 1e6;
}

static void stay(void)
{
}

static void walk(void)
{
#ifdef __x86_64__
    __asm__ volatile(".rept 128\n\tjmp 1f\n\t.balign 64\n1:\n\t.endr");
#endif
}

static double measure_look_behind(void (*before)(void))
{
    uint64_t word;
    struct iovec local = {&word, sizeof word}, remote = {&shared->turn, sizeof word};
    pid_t other = start_other(sleep_on);
    for (unsigned i = 0; i < word_count; i++) {
        before();
        double start = measure_seconds();
        if (process_vm_readv(other, &local, 1, &remote, 1, 0) != sizeof word)
            return 0;
        samples[i] = measure_seconds() - start;
    }
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return measure_median(samples, word_count) * 1e6;
}

typedef ssize_t transferrer(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                            unsigned long);

static ssize_t write_pieces(pid_t other, const struct iovec *local, unsigned long local_count,
                            const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
    size_t body = local->iov_len - 8;
    struct iovec from[] = {{local->iov_base, body}, {(char *)local->iov_base + body, 8}};
    return process_vm_writev(other, from, 2, remote, 1, flags);
}

static double measure_words(void)
{
    enum { TOGETHER = 16 };
    uint64_t words[TOGETHER] = {0};
    struct iovec local[TOGETHER], remote[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) {
        local[i] = (struct iovec){&words[i], sizeof *words};
        remote[i] = (struct iovec){&shared[i].turn, sizeof *words};
    }
    pid_t other = start_other(sleep_on);
    double start = measure_seconds();
    for (unsigned i = 0; i < calls; i++)
        if (process_vm_writev(other, local, TOGETHER, remote, TOGETHER, 0) != TOGETHER * sizeof *words)
            return 0;
    double seconds = measure_seconds() - start;
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return (double)TOGETHER * calls / seconds / 1e6;
}

/* The rate between `to` of this process and `from` of the other, in either direction; without another, of a copy. */
static double rate(size_t size, pid_t other, char *to, char *from, transferrer *transfer)
{
    size_t count = measure_rounds((unsigned)(((size_t)4 << 30) / size));
    double start = 0;
    for (size_t i = 0; i < count + count / 10; i++) {
        if (i == count / 10) /* the first tenth warms up */
            start = measure_seconds();
        struct iovec local = {to, size}, remote = {from, size};
        if (!other)
            memcpy(to, from, size);
        else if (transfer(other, &local, 1, &remote, 1, 0) != (ssize_t)size)
            return 0;
        atomic_signal_fence(memory_order_seq_cst);
    }
    return (double)(count * size) / (measure_seconds() - start) / 1e9;
}

static double measure_copy(size_t size, transferrer *transfer)
{
    char *from = aligned_alloc(4096, size), *to = aligned_alloc(4096, size);
    if (!from || !to)
        return 0;
    memset(from, 1, size);
    memset(to, 2, size);
    pid_t other = transfer ? start_other(sleep_on) : 0;
    measure_pin(0);
    double result = rate(size, other, to, from, transfer);
    if (other) {
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
    free(from);
    free(to);
    return result;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    size_t size = argc > 2 ? (size_t)atol(argv[2]) : 0;
    double result = 0;
    count_rounds();
    shared = mmap(NULL, (SLOTS + 1) * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    if (!strcmp(what, "line"))
        result = measure_line();
    else if (!strcmp(what, "ring"))
        result = measure_ring();
    else if (!strcmp(what, "word"))
        result = measure_word();
    else if (!strcmp(what, "look"))
        result = measure_look_behind(stay);
    else if (!strcmp(what, "walk"))
        result = measure_look_behind(walk);
    else if (!strcmp(what, "words"))
        result = measure_words();
    else if (size > 8 && !strcmp(what, "pieces"))
        result = measure_copy(size, write_pieces);
    else if (size && !strcmp(what, "memcpy"))
        result = measure_copy(size, NULL);
    else if (size && (!strcmp(what, "readv") || !strcmp(what, "writev")))
        result = measure_copy(size, !strcmp(what, "readv") ? process_vm_readv : process_vm_writev);
    if (result <= 0) {
        fprintf(stderr, "limits: %s cannot be measured here\n", argc > 1 ? what : "nothing");
        return 1;
    }
    printf("%.6f\n", result);
    return 0;
}
