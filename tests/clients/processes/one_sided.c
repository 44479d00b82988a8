/* A requester accesses another process's memory by itself, and the owner ends the access. The parent owns the memory,
 * its child writes. Usage: one_sided MODE [ROUNDS]
 *
 * - ended: the owner deregisters, changes the access, moves or destroys the queue pair while it is written. Once the
 *   call has returned no byte changes.
 * - order: a WRITE after a SEND and a SEND after a WRITE are seen in that order.
 * - ways: the owner polls, looks at its memory and sleeps by turns, so that short work is done as packets and without,
 *   between longer work, which is done without. All of it is seen in the order of posting.
 * - litmus: the same with SENDs: a WRITE before a SEND and one after it, and a READ of the first.
 * - polls: a writer whose WRITEs are done without a packet polls in vain between them, and keeps its processor.
 * - killed: the writer is killed in the midst. The owner's calls return all the same.
 * - stopped: the writer is stopped in the midst, mostly within a WRITE. The owner does not wait until it continues, and
 *   no byte changes afterwards.
 * - refused: the system begins to refuse process_vm_writev. WRITEs still arrive.
 *
 * Exit status 0, or 1 with a sentence. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

enum { WRITER, OWNER, TIMEOUT = 8, LOOKS = 2000, RECEIVES = 64, SLOT = 64 };

/* The memory that both processes share besides verbs. */
static struct stage {
    struct address addresses[2];
    atomic_uint told[2], connected[2], round, done, failed;
    atomic_bool stop;
} * stage;

struct side {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    _Alignas(4096) char memory[65536];
};

static struct side side;

static void wait_until(atomic_uint *word, unsigned least)
{
    double until = now_seconds() + 30;
    while (atomic_load(word) < least) {
        if (now_seconds() > until)
            die("the other side does not go on");
        sched_yield();
    }
}

/* Sends the own address, and connects with the address received; then both are ready to receive. */
static void meet(int me, unsigned round)
{
    stage->addresses[me] = endpoint_address(&side.endpoint, side.qp, side.mr);
    atomic_store(&stage->told[me], round);
    wait_until(&stage->told[!me], round);
    endpoint_connect(side.qp, &stage->addresses[!me], TIMEOUT);
    atomic_store(&stage->connected[me], round);
    wait_until(&stage->connected[!me], round);
}

static void open_side(void)
{
    endpoint_open(&side.endpoint, 4 * RECEIVES);
    side.mr = endpoint_register(&side.endpoint, side.memory, sizeof side.memory);
}

static void make_qp(void)
{
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, RECEIVES, RECEIVES);
}

static void drop_qp(void)
{
    if (ibv_destroy_qp(side.qp))
        die("ibv_destroy_qp");
}

/* One signalled work request, 8 bytes; true when it succeeded. */
static bool ask(enum ibv_wr_opcode opcode, uint64_t offset, bool wait)
{
    struct ibv_sge sge = {(uintptr_t)side.memory + offset, 8, side.mr->lkey};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_wc wc;
    send.wr.rdma.remote_addr = stage->addresses[OWNER].memory + offset;
    send.wr.rdma.rkey = stage->addresses[OWNER].rkey;
    if (ibv_post_send(side.qp, &send, &bad))
        die("ibv_post_send");
    if (!wait)
        return true;
    if (!endpoint_wait(&side.endpoint, &wc, 1, 30))
        die("a work request does not end");
    return wc.status == IBV_WC_SUCCESS;
}

static void write_until_refused(unsigned round)
{
    make_qp();
    meet(WRITER, round);
    memset(side.memory, 0xff, 64);
    while (ask(IBV_WR_RDMA_WRITE, 0, true))
        atomic_fetch_add(&stage->done, 1);
    atomic_store(&stage->failed, round);
    drop_qp();
}

static void change_access(void)
{
    if (ibv_rereg_mr(side.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE))
        die("ibv_rereg_mr");
}

static void change_state(enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    if (ibv_modify_qp(side.qp, &attr, IBV_QP_STATE))
        die("ibv_modify_qp");
}

/* Each a way in which the owner takes its memory back. Those that leave the peer without an answer take its retries, so
 * they are sent now and then. */
static void take_back(unsigned round)
{
    if (round % 50 == 49)
        drop_qp();
    else if (round % 50 == 29)
        change_state(IBV_QPS_RESET);
    else if (round % 50 == 9)
        change_state(IBV_QPS_ERR);
    else if (round % 2)
        change_access();
    else if (ibv_dereg_mr(side.mr))
        die("ibv_dereg_mr");
}

static void expect_untouched(const volatile uint64_t *word, unsigned round)
{
    if (*word)
        die("round %u: memory was written after it had been taken back", round);
}

static void own_and_take_back(unsigned round)
{
    volatile uint64_t *word = (uint64_t *)(void *)side.memory;
    *word = 0;
    make_qp();
    meet(OWNER, round);
    wait_until(&stage->done, atomic_load(&stage->done) + 2 + round % 7);
    for (unsigned i = 0; i < round % 31; i++)
        (void)*word;
    take_back(round);
    *word = 0;
    for (int i = 0; i < LOOKS; i++)
        expect_untouched(word, round);
    wait_until(&stage->failed, round);
    expect_untouched(word, round);
    if (round % 50 != 49)
        drop_qp();
    if (round % 2 && ibv_dereg_mr(side.mr))
        die("ibv_dereg_mr");
    side.mr = endpoint_register(&side.endpoint, side.memory, sizeof side.memory);
}

static int run_ended(bool writer, unsigned rounds)
{
    open_side();
    for (unsigned round = 1; round <= rounds; round++)
        writer ? write_until_refused(round) : own_and_take_back(round);
    return 0;
}

/* --- order */

static void post_receive(unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)side.memory + 4096 + slot % RECEIVES * SLOT, 8, side.mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side.qp, &receive, &bad))
        die("ibv_post_recv");
}

static volatile uint64_t *received_at(unsigned slot)
{
    return (uint64_t *)(void *)(side.memory + 4096 + slot % RECEIVES * SLOT);
}

/* At 0 is the value written after the SEND of that number, at 8 the value written before it. */
static void send_in_order(unsigned rounds)
{
    uint64_t *words = (uint64_t *)(void *)side.memory;
    for (unsigned i = 1; i <= rounds; i++) {
        words[0] = words[1] = i;
        bool waits = i % 3 == 0;
        struct ibv_wc wc;
        ask(IBV_WR_RDMA_WRITE, 8, i % 2);
        ask(IBV_WR_SEND, 0, waits);
        ask(IBV_WR_RDMA_WRITE, 0, false);
        for (int left = 3 - i % 2 - waits; left; left--)
            if (!endpoint_wait(&side.endpoint, &wc, 1, 30) || wc.status != IBV_WC_SUCCESS)
                die("order: a work request fails with status %d", wc.status);
        wait_until(&stage->round, i);
    }
}

static void see_in_order(unsigned rounds)
{
    volatile uint64_t *words = (uint64_t *)(void *)side.memory;
    struct ibv_wc wc;
    for (unsigned i = 1; i <= rounds; i++) {
        double until = now_seconds() + 30;
        while (words[0] != i && now_seconds() < until)
            if (*received_at(i) == i && words[1] != i)
                die("round %u: a SEND overtook the WRITE before it", i);
        if (*received_at(i) != i)
            die("round %u: a WRITE overtook the SEND before it", i);
        if (!endpoint_wait(&side.endpoint, &wc, 1, 30) || wc.status != IBV_WC_SUCCESS)
            die("round %u: the SEND does not arrive", i);
        post_receive(i + RECEIVES);
        atomic_store(&stage->round, i);
    }
}

static int run_order(bool writer, unsigned rounds)
{
    open_side();
    make_qp();
    for (unsigned i = 1; !writer && i <= RECEIVES; i++)
        post_receive(i);
    meet(writer ? WRITER : OWNER, 1);
    writer ? send_in_order(rounds) : see_in_order(rounds);
    return 0;
}

/* --- ways */

enum { LONG = 2048, FLYING = 16, SOURCES = 16384, RESULT = 8192, WORK_EACH = 20000 };

/* The last `length` bytes of LONG: ours at `block`, and the owner's. */
static void ask_of(enum ibv_wr_opcode opcode, uint64_t block, uint32_t length, bool signalled)
{
    struct ibv_sge sge = {(uintptr_t)side.memory + block + LONG - length, length, side.mr->lkey};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    send.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
    send.wr.rdma.remote_addr = stage->addresses[OWNER].memory + LONG - length;
    send.wr.rdma.rkey = stage->addresses[OWNER].rkey;
    if (ibv_post_send(side.qp, &send, &bad))
        die("ibv_post_send");
}

static void wait_for_one(unsigned number)
{
    struct ibv_wc wc;
    double until = now_seconds() + 30;
    while (!ibv_poll_cq(side.endpoint.cq, 1, &wc))
        if (now_seconds() > until)
            die("ways: work %u does not end", number);
    if (wc.status)
        die("ways: work %u fails with status %d", number, wc.status);
}

/* The word that the last byte of all work is in. */
static volatile uint64_t *word_of(uint64_t block)
{
    return (uint64_t *)(void *)(side.memory + block + LONG - sizeof(uint64_t));
}

/* The WRITE of this number, and now and then a later READ, which must see it. Each phase has another mixture. */
static void write_and_read(unsigned number)
{
    unsigned phase = number / WORK_EACH;
    uint64_t source = SOURCES + number % FLYING * LONG;
    bool is_long = phase % 3 == 0 ? false : phase % 3 == 1 ? number % 5 == 0 : number % 100 == 0;
    unsigned each = phase % 4 == 3 ? FLYING - 4 : 3;
    bool reads = number % (each + 1) == 0, signalled = reads || number % each == 0;
    *word_of(source) = number;
    ask_of(IBV_WR_RDMA_WRITE, source, is_long ? LONG : 8, signalled && !reads);
    if (reads)
        ask_of(IBV_WR_RDMA_READ, RESULT, number % 8 && phase % 2 ? LONG : 8, true);
    if (signalled)
        wait_for_one(number);
    if (reads && *word_of(RESULT) != number)
        die("a READ behind WRITE %u gets %llu", number, (unsigned long long)*word_of(RESULT));
}

static void write_all_ways(unsigned works)
{
    for (unsigned number = 1; number <= works; number++)
        write_and_read(number);
    ask_of(IBV_WR_RDMA_READ, RESULT, 8, true);
    wait_for_one(works);
    atomic_store(&stage->stop, true);
}

/* Polls in every other phase, and in the others looks and sleeps now and then. */
static void see_all_ways(unsigned works)
{
    volatile uint64_t *word = word_of(0);
    struct ibv_wc wc;
    uint64_t seen = 0;
    for (uint64_t look = 0; !atomic_load(&stage->stop); look++) {
        uint64_t now = *word;
        if (now < seen)
            die("WRITE %llu is seen behind WRITE %llu", (unsigned long long)now, (unsigned long long)seen);
        seen = now;
        if (now / WORK_EACH % 2 == 0)
            ibv_poll_cq(side.endpoint.cq, 1, &wc);
        else if (look % 100000 == 0)
            usleep(100);
    }
    if (*word != works)
        die("the last WRITE is %llu", (unsigned long long)*word);
}

static int run_ways(bool writer, unsigned works)
{
    open_side();
    make_qp();
    meet(writer ? WRITER : OWNER, 1);
    writer ? write_all_ways(works) : see_all_ways(works);
    return 0;
}

/* --- killed, refused */

/* --- litmus */

enum { NUMBER = 2560, SECOND = 3072, AHEAD = 32, ROUNDS_EACH = 500 };

/* The first WRITE is short or long, and the READ after it is short. */
static void write_send_and_read(unsigned number)
{
    *word_of(SOURCES) = number;
    *(uint64_t *)(void *)(side.memory + NUMBER) = *(uint64_t *)(void *)(side.memory + SECOND) = number;
    ask_of(IBV_WR_RDMA_WRITE, SOURCES, number % 3 ? 8 : LONG, true);
    ask(IBV_WR_SEND, NUMBER, false);
    ask(IBV_WR_RDMA_WRITE, SECOND, false);
    ask_of(IBV_WR_RDMA_READ, RESULT, 8, true);
    for (int works = 0; works < 4; works++)
        wait_for_one(number);
    if (*word_of(RESULT) != number)
        die("READ %u finds what WRITE %llu wrote", number, (unsigned long long)*word_of(RESULT));
}

static void run_litmus_writer(unsigned rounds)
{
    for (unsigned number = 1; number <= rounds; number++) {
        double until = now_seconds() + 30;
        while (atomic_load(&stage->round) + AHEAD < number)
            if (now_seconds() > until)
                die("SEND %u is not taken", number - AHEAD);
        write_send_and_read(number);
    }
}

/* Returns true if one has arrived. */
static bool take_receive(unsigned *taken)
{
    struct ibv_wc wc;
    if (!ibv_poll_cq(side.endpoint.cq, 1, &wc))
        return false;
    if (wc.status != IBV_WC_SUCCESS || *word_of(0) < ++*taken)
        die("SEND %u overtook the WRITE before it", *taken);
    post_receive(*taken + RECEIVES);
    atomic_store(&stage->round, *taken);
    return true;
}

/* Polls and looks at its memory by turns. */
static void run_litmus_owner(unsigned rounds)
{
    volatile uint64_t *second = (uint64_t *)(void *)(side.memory + SECOND);
    unsigned taken = 0;
    for (uint64_t look = 0; taken < rounds; look++) {
        uint64_t written = *second;
        if (*word_of(0) < written)
            die("WRITE %llu overtook the one before it", (unsigned long long)written);
        if (written > taken && *received_at((unsigned)written) != written)
            die("WRITE %llu overtook the SEND before it", (unsigned long long)written);
        bool polls = taken / ROUNDS_EACH % 2 == 0 || written > taken;
        if (!(polls && take_receive(&taken)) && look % 100000 == 0)
            usleep(100);
    }
}

static int run_litmus(bool writer, unsigned rounds)
{
    open_side();
    make_qp();
    for (unsigned i = 1; !writer && i <= RECEIVES; i++)
        post_receive(i);
    meet(writer ? WRITER : OWNER, 1);
    writer ? run_litmus_writer(rounds) : run_litmus_owner(rounds);
    return 0;
}

/* --- polls */

static unsigned yields;

/* Replaces the system's sched_yield, for the library, too. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* Returns whether a poll yielded. How often it yields is the scheduler's choice: a thread that waits for a lock, whose
 * holder has no processor, yields many times. */
static bool poll_in_vain(void)
{
    enum { POLLS = 64 };
    struct ibv_wc wc;
    yields = 0;
    for (int poll = 0; poll < POLLS; poll++)
        if (ibv_poll_cq(side.endpoint.cq, 1, &wc))
            die("polls: a completion too many");
    return yields;
}

static void write_and_poll_in_vain(unsigned rounds)
{
    enum { ROUNDS_A_YIELD = 8 };
    unsigned yielding = 0;
    for (unsigned number = 1; number <= rounds; number++) {
        ask_of(IBV_WR_RDMA_WRITE, SOURCES, 8, true);
        wait_for_one(number);
        yielding += poll_in_vain();
    }
    if (yielding > rounds / ROUNDS_A_YIELD)
        die("polls: the processor is yielded after %u of %u WRITEs", yielding, rounds);
    atomic_store(&stage->stop, true);
}

static int run_polls(bool writer, unsigned rounds)
{
    open_side();
    make_qp();
    meet(writer ? WRITER : OWNER, 1);
    if (writer)
        write_and_poll_in_vain(rounds);
    for (double until = now_seconds() + 60; !atomic_load(&stage->stop); usleep(1000))
        if (now_seconds() > until)
            die("polls: the writer does not end");
    return 0;
}

static int run_writer_for_ever(void)
{
    open_side();
    make_qp();
    meet(WRITER, 1);
    memset(side.memory, 0xff, 64);
    while (!atomic_load(&stage->stop) && ask(IBV_WR_RDMA_WRITE, 0, true))
        atomic_fetch_add(&stage->done, 1);
    return 0;
}

static int run_killed(bool writer, pid_t child)
{
    if (writer)
        return run_writer_for_ever();
    open_side();
    make_qp();
    meet(OWNER, 1);
    wait_until(&stage->done, 100);
    kill(child, SIGKILL);
    double before = now_seconds();
    if (ibv_dereg_mr(side.mr))
        die("ibv_dereg_mr");
    drop_qp();
    if (now_seconds() - before > 5)
        die("the owner waited for a writer that was dead");
    for (int i = 0; i < 8; i++)
        if ((uint8_t)side.memory[i] != 0xff)
            die("a part of a word was written");
    return 0;
}

static pid_t stopped_writer;

static volatile sig_atomic_t waited;

static void let_it_go_on(int number)
{
    waited = 1;
    kill(stopped_writer, SIGCONT);
}

static void take_back_from_the_stopped(unsigned round)
{
    if (round % 10 == 9)
        change_state(IBV_QPS_ERR);
    else if (round % 2)
        change_access();
    else if (ibv_dereg_mr(side.mr))
        die("ibv_dereg_mr");
}

static void own_and_stop(unsigned round)
{
    volatile uint64_t *word = (uint64_t *)(void *)side.memory;
    struct itimerval late = {.it_value.tv_sec = 20}, never = {0};
    int status;
    make_qp();
    meet(OWNER, round);
    wait_until(&stage->done, atomic_load(&stage->done) + 2 + round % 7);
    if (kill(stopped_writer, SIGSTOP) || waitpid(stopped_writer, &status, WUNTRACED) != stopped_writer)
        die("the writer can't be stopped");
    setitimer(ITIMER_REAL, &late, NULL);
    take_back_from_the_stopped(round);
    setitimer(ITIMER_REAL, &never, NULL);
    if (waited)
        die("round %u: the owner waited for a writer that was stopped", round);
    *word = 0;
    kill(stopped_writer, SIGCONT);
    for (int i = 0; i < LOOKS; i++)
        expect_untouched(word, round);
    wait_until(&stage->failed, round);
    expect_untouched(word, round);
    drop_qp();
    if (round % 2 && ibv_dereg_mr(side.mr))
        die("ibv_dereg_mr");
    side.mr = endpoint_register(&side.endpoint, side.memory, sizeof side.memory);
}

static int run_stopped(bool writer, pid_t child, unsigned rounds)
{
    stopped_writer = child;
    if (!writer)
        signal(SIGALRM, let_it_go_on);
    open_side();
    for (unsigned round = 1; round <= rounds; round++)
        writer ? write_until_refused(round) : own_and_stop(round);
    return 0;
}

static int run_refused(bool writer, unsigned rounds)
{
    volatile uint64_t *words = (uint64_t *)(void *)side.memory;
    open_side();
    make_qp();
    meet(writer ? WRITER : OWNER, 1);
    for (unsigned i = 1; i <= rounds; i++) {
        if (writer && i == rounds / 2)
            endpoint_refuse(SYS_process_vm_writev);
        if (writer)
            words[0] = i;
        if (writer && !ask(IBV_WR_RDMA_WRITE, 0, true))
            die("round %u: a WRITE fails", i);
        if (!writer)
            wait_until(&stage->round, i);
        if (!writer && words[0] != i)
            die("round %u: a WRITE has ended and has not arrived", i);
        if (!writer)
            atomic_store(&stage->done, i);
        else
            atomic_store(&stage->round, i), wait_until(&stage->done, i);
    }
    return 0;
}

static int run(const char *mode, bool writer, pid_t child, unsigned rounds)
{
    if (!strcmp(mode, "ended"))
        return run_ended(writer, rounds);
    if (!strcmp(mode, "order"))
        return run_order(writer, rounds);
    if (!strcmp(mode, "ways"))
        return run_ways(writer, rounds);
    if (!strcmp(mode, "litmus"))
        return run_litmus(writer, rounds);
    if (!strcmp(mode, "polls"))
        return run_polls(writer, rounds);
    if (!strcmp(mode, "killed"))
        return run_killed(writer, child);
    if (!strcmp(mode, "stopped"))
        return run_stopped(writer, child, rounds);
    if (!strcmp(mode, "refused"))
        return run_refused(writer, rounds);
    die("usage: one_sided ended|order|ways|litmus|polls|killed|stopped|refused [ROUNDS]");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
    int status;
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (!child)
        return prctl(PR_SET_PDEATHSIG, SIGKILL), run(mode, true, 0, rounds);
    int answer = run(mode, false, child, rounds);
    if (waitpid(child, &status, 0) != child || (status && strcmp(mode, "killed")))
        die("the writer ended with status 0x%x", (unsigned)status);
    return answer;
}
