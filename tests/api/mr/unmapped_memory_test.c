/* Memory that the program took away while it was registered: no access of ours ends the process. error_matrix_test has
 * every operation; this program has all ways to lose memory, and messages of all lengths that lose it midway. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "diag/diag.h"
#include "local_end.h"
#include "local_fixture.h"
#include "one_process.h"

enum { PAGE = 4096, ROOM = 4 << 20, RECEIVE_ID = 9 };

static const char *const loss_names[] = {"unmapped", "protected", "read-only", "truncated"};
static const uint32_t lengths[] = {8, 1000, PAGE * 3 + 5, 70000, 3 << 20}; /* copied, in pieces, by reference */

/* Sanitizers map memory at any time, and may do so just there: ThreadSanitizer, and AddressSanitizer of gcc 14 with
 * detect_stack_use_after_return (a third of the runs; without that, no run). */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static const enum loss first_loss = LOSS_PROTECTED;
#else
static const enum loss first_loss = LOSS_UNMAPPED;
#endif

static struct pair open_pair(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.length = ROOM;
    wishes.timeout = 14;
    struct pair pair = pair_open_as(wishes);
    pair_ping(&pair, &pair.near, &pair.far); /* what is made with the first message is made */
    return pair;
}

/* The page with the last of `length` bytes is lost. */
static void lose_end(struct end *end, uint32_t length, enum loss loss)
{
    uint64_t at = (end->memory + length - 1) & ~(uint64_t)(PAGE - 1);
    remote_lose(end->remote, at, PAGE, loss);
}

static void expect_near(struct pair *pair, enum ibv_wc_status status, enum reason reason)
{
    struct ibv_wc wc = end_sent(&pair->near);
    EXPECT(wc.wr_id, ==, 1);
    EXPECT(wc.status, ==, status);
    EXPECT(wc.vendor_err, ==, reason);
}

static uint32_t length_of(enum ibv_wr_opcode opcode, uint32_t length)
{
    return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : length;
}

static void try_local(enum ibv_wr_opcode opcode, uint32_t length, enum loss loss)
{
    struct pair pair = open_pair();
    bool reads = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE, fine = reads && loss == LOSS_READ_ONLY;
    end_post_receive(&pair.far, end_receive(&pair.far, RECEIVE_ID, 0, ROOM / 2 + ROOM / 4));
    lose_end(&pair.near, length, loss);
    end_post(&pair.near, end_send(&pair.near, &pair.far, opcode, 1, 0, length));
    expect_near(&pair, fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, fine ? REASON_NONE : REASON_LOCAL_GONE);
    remote_clear(pair.near.remote);
    remote_clear(pair.far.remote);
}

static void try_remote(enum ibv_wr_opcode opcode, uint32_t length, enum loss loss)
{
    struct pair pair = open_pair();
    bool fine = opcode == IBV_WR_RDMA_READ && loss == LOSS_READ_ONLY;
    lose_end(&pair.far, length, loss);
    end_post(&pair.near, end_send(&pair.near, &pair.far, opcode, 1, 0, length));
    expect_near(&pair, fine ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, fine ? REASON_NONE : REASON_REMOTE_ACCESS);
    remote_clear(pair.near.remote);
    remote_clear(pair.far.remote);
}

static void try_receive(uint32_t length, enum loss loss)
{
    struct pair pair = open_pair();
    end_post_receive(&pair.far, end_receive(&pair.far, RECEIVE_ID, 0, length));
    lose_end(&pair.far, length, loss);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, length));
    expect_near(&pair, IBV_WC_REM_OP_ERR, REASON_REMOTE_OPERATION);
    struct ibv_wc wc = end_received(&pair.far);
    EXPECT(wc.wr_id, ==, RECEIVE_ID);
    EXPECT(wc.status, ==, IBV_WC_LOC_PROT_ERR);
    EXPECT(wc.vendor_err, ==, REASON_RECEIVE_GONE);
    remote_clear(pair.near.remote);
    remote_clear(pair.far.remote);
}

static void memory_that_a_message_is_sent_from_is_gone(const void *row)
{
    enum loss loss = *(const enum loss *)row;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        try_local(IBV_WR_SEND, lengths[i], loss);
        try_local(IBV_WR_RDMA_WRITE, lengths[i], loss);
    }
}

static void memory_that_an_answer_is_stored_in_is_gone(const void *row)
{
    enum loss loss = *(const enum loss *)row;
    for (size_t i = 0; i < COUNT(lengths); i++)
        try_local(IBV_WR_RDMA_READ, lengths[i], loss);
    try_local(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, loss);
}

static void memory_that_a_peer_names_is_gone(const void *row)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    enum loss loss = *(const enum loss *)row;
    for (size_t j = 0; j < COUNT(opcodes); j++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            if (!i || opcodes[j] != IBV_WR_ATOMIC_FETCH_AND_ADD)
                try_remote(opcodes[j], length_of(opcodes[j], lengths[i]), loss);
}

static void memory_of_a_receive_is_gone(const void *row)
{
    for (size_t i = 0; i < COUNT(lengths); i++)
        try_receive(lengths[i], *(const enum loss *)row);
}

/* Work before the one that fails ends first, and with success. */
static void work_before_it_ends_in_its_turn(const void *row)
{
    struct pair pair = open_pair();
    remote_lose(pair.near.remote, pair.near.memory, PAGE, LOSS_PROTECTED);
    struct send list[3];
    for (uint64_t i = 0; i < 3; i++)
        list[i] = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, i, i == 2 ? 0 : PAGE, i ? 64 : 1 << 20);
    EXPECT(remote_post_send(pair.near.remote, pair.near.qp, list, 3, NULL), ==, 0);
    end_expect_sent(&pair.near, 0, IBV_WC_SUCCESS);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_expect_sent(&pair.near, 2, IBV_WC_LOC_PROT_ERR);
}

static void without_retries_it_is_the_same(const void *row)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.length = ROOM;
    wishes.retries = 0;
    wishes.timeout = 20; /* 4 s: what was sent before the loss is acknowledged late where the processor is shared */
    struct pair pair = pair_open_as(wishes);
    pair_ping(&pair, &pair.near, &pair.far);
    lose_end(&pair.near, 1 << 20, LOSS_PROTECTED);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 1 << 20));
    expect_near(&pair, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
}

/* The error is reported without a timer, too. */
static void without_a_time_out_it_is_the_same(const void *row)
{
    for (size_t i = 0; i < 2; i++) {
        struct wishes wishes = pair_wishes(IBV_QPT_RC);
        wishes.timeout = 0;
        struct pair pair = pair_open_as(wishes);
        pair_ping(&pair, &pair.near, &pair.far);
        end_post_receive(&pair.far, end_receive(&pair.far, RECEIVE_ID, 0, PAGE));
        lose_end(&pair.near, lengths[i], LOSS_PROTECTED);
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, lengths[i]));
        expect_near(&pair, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
        remote_clear(pair.near.remote);
        remote_clear(pair.far.remote);
    }
}

/* --- the program's own handlers and masks; the near end lives in this process */

static volatile sig_atomic_t calls;

static void count_and_end(int number)
{
    calls = calls + 1;
    _exit(3);
}

static void wait_for_a_look(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000},
              NULL); /* the library looks every 4 ms while data moves */
}

static void set_handler(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    wait_for_a_look();
}

static void a_handler_that_is_set_later_sees_nothing_of_it(const void *row)
{
    struct pair pair = open_pair();
    set_handler(count_and_end);
    remote_lose(pair.near.remote, pair.near.memory, PAGE, LOSS_PROTECTED);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 64));
    expect_near(&pair, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
    EXPECT(calls, ==, 0);
    set_handler(SIG_DFL);
}

static void a_thread_that_blocks_the_signals_lives_on(const void *row)
{
    sigset_t all, before;
    struct pair pair = open_pair();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    wait_for_a_look();
    remote_lose(pair.near.remote, pair.near.memory, PAGE, LOSS_TRUNCATED);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 64));
    expect_near(&pair, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
    pthread_sigmask(SIG_SETMASK, NULL, &all);
    EXPECT_TRUE(sigismember(&all, SIGSEGV) && sigismember(&all, SIGBUS));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- what the caller itself hands over */

static void inline_data_that_cannot_be_read_is_EFAULT(const void *row)
{
    struct pair pair = open_pair();
    struct send good = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 8), bad = good;
    int which;
    bad.wr.send_flags |= IBV_SEND_INLINE;
    bad.sge[0].addr = 64;
    struct send list[] = {good, bad};
    EXPECT(remote_post_send(pair.near.remote, pair.near.qp, list, 2, &which), ==, EFAULT);
    EXPECT(which, ==, 1);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    pair_ping(&pair, &pair.near, &pair.far);
}

static void so_are_copies_to_and_from_device_memory(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(fixture.context, &attr);
    EXPECT_TRUE(dm);
    EXPECT(ibv_memcpy_to_dm(dm, 0, (void *)64, 64), ==, EFAULT);
    EXPECT(ibv_memcpy_from_dm((void *)64, dm, 0, 64), ==, EFAULT);
    EXPECT(ibv_memcpy_to_dm(dm, 0, fixture.memory, 64), ==, 0);
    EXPECT(ibv_free_dm(dm), ==, 0);
    fixture_close(&fixture);
}

/* --- what the library maps later */

enum { HOLES = 7 };

static struct hole {
    char *begin;
    size_t length;
    struct ibv_mr *mr;
} holes[HOLES];

static struct ibv_mr *register_at(struct fixture *fixture, char *begin, size_t length, bool moved)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ibv_mr *mr = ibv_reg_mr(fixture->pd, moved ? fixture->memory : begin, moved ? PAGE : length, access);
    EXPECT_TRUE(mr);
    if (moved)
        EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, begin, length, 0), ==, 0);
    return mr;
}

/* Regions of 1 to 64 MiB where the kernel puts them, unmapped while they are registered: the next map gets the
 * place. `moved`: the regions were made of other memory. */
static void dig(struct fixture *fixture, bool moved)
{
    for (unsigned i = 0; i < HOLES; i++) {
        size_t length = (size_t)1 << (20 + i);
        char *begin = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT_TRUE(begin != MAP_FAILED);
        holes[i] = (struct hole){begin, length, register_at(fixture, begin, length, moved)};
    }
    for (unsigned i = 0; i < HOLES; i++)
        EXPECT(munmap(holes[i].begin, holes[i].length), ==, 0);
}

/* Our files: rings, tables, what is published. */
static unsigned count_ours_within_holes(void)
{
    char line[512];
    unsigned long begin, end;
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    EXPECT_TRUE(maps);
    while (fgets(line, sizeof line, maps)) {
        if (!strstr(line, "softverbs") || sscanf(line, "%lx-%lx", &begin, &end) != 2)
            continue;
        for (unsigned i = 0; i < HOLES; i++)
            count += begin < (uintptr_t)holes[i].begin + holes[i].length && (uintptr_t)holes[i].begin < end;
    }
    fclose(maps);
    return count;
}

static void fill_up(void)
{
    for (unsigned i = 0; i < HOLES; i++)
        EXPECT(ibv_dereg_mr(holes[i].mr), ==, 0);
}

/* The first messages of peers make rings. */
static void what_the_library_maps_later_is_in_no_region(const void *row)
{
    struct fixture fixture = fixture_open();
    dig(&fixture, row);
    struct pair pair = open_pair();
    pair_ping(&pair, &pair.far, &pair.near);
    EXPECT(count_ours_within_holes(), ==, 0);
    remote_clear(pair.near.remote);
    remote_clear(pair.far.remote);
    fill_up();
    fixture_close(&fixture);
}

static void each_loss(const char *name, void (*body)(const void *))
{
    char full[128];
    for (enum loss loss = first_loss; loss < LOSSES; loss++) {
        snprintf(full, sizeof full, "%s: %s", name, loss_names[loss]);
        harness_run(full, body, &loss);
    }
}
#define CASE_OF_EACH_LOSS(body) each_loss(#body, body)

static void all(void)
{
    CASE_OF_EACH_LOSS(memory_that_a_message_is_sent_from_is_gone);
    CASE_OF_EACH_LOSS(memory_that_an_answer_is_stored_in_is_gone);
    CASE_OF_EACH_LOSS(memory_that_a_peer_names_is_gone);
    CASE_OF_EACH_LOSS(memory_of_a_receive_is_gone);
    CASE(what_the_library_maps_later_is_in_no_region);
    harness_run("what_the_library_maps_later_is_in_no_region (that moved)", what_the_library_maps_later_is_in_no_region,
                "");
    CASE(work_before_it_ends_in_its_turn);
    CASE(without_retries_it_is_the_same);
    CASE(without_a_time_out_it_is_the_same);
    CASE(a_handler_that_is_set_later_sees_nothing_of_it);
    CASE(a_thread_that_blocks_the_signals_lives_on);
    CASE(inline_data_that_cannot_be_read_is_EFAULT);
    CASE(so_are_copies_to_and_from_device_memory);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
