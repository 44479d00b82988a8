/* Queues in memory: events of completion queues, helpers that sleep, and the children of forks. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "ends.h"
#include "one_process.h"

/* --- events */

static bool has_event(int patience)
{
    struct pollfd fd = {.fd = ends.channel->fd, .events = POLLIN};
    return poll(&fd, 1, patience) == 1;
}

static void take_event(const struct entries *entries)
{
    struct ibv_cq *cq;
    void *context;
    EXPECT_TRUE(has_event(PATIENCE));
    EXPECT(ibv_get_cq_event(ends.channel, &cq, &context), ==, 0);
    EXPECT_TRUE(cq == entries->cq);
    ibv_ack_cq_events(cq, 1);
}

static void an_armed_queue_raises_an_event(const void *row)
{
    ends_open_connection();
    for (unsigned i = 0; i < 4; i++)
        ends_receive();
    entries_arm(&ends.received, false);
    EXPECT_TRUE(!has_event(20));
    ends_send_inline(SEND, "one");
    take_event(&ends.received);
    ends_send_inline(SEND, "two");
    entries_next(&ends.received);
    ends_expect_entry(&ends.received, ENTRY_SEND, 1);
    EXPECT_TRUE(!has_event(20));
    ends_send_inline(SEND, "three"); /* is there when the queue is armed */
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, 0);
    PATIENTLY_WHILE(entries_look(&ends.sent).counter != 2);
    entries_arm(&ends.received, false);
    take_event(&ends.received);
    ends_close();
}

static void solicited_events_are_for_solicited_messages(const void *row)
{
    ends_open_connection();
    ends_receive();
    ends_receive();
    entries_arm(&ends.received, true);
    ends_send_inline(SEND, "not solicited");
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    EXPECT_TRUE(!has_event(20));
    driver_begin(&ends.near, SEND, SIGNALLED | SOLICITED, 0);
    driver_end(&ends.near);
    driver_ring(&ends.near);
    take_event(&ends.received);
    ends_close();
}

/* The helper sees the second alone, mostly. */
static void of_two_armings_the_wider_one_counts(const void *row)
{
    ends_open_connection();
    ends_receive();
    entries_arm(&ends.received, false);
    ends_send_inline(SEND, "one");
    take_event(&ends.received);
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    for (uint16_t i = 1; i <= 40; i++) {
        ends_receive();
        entries_arm(&ends.received, false);
        entries_arm(&ends.received, true);
        ends_send_inline(SEND, "not solicited");
        take_event(&ends.received);
        ends_expect_entry(&ends.received, ENTRY_SEND, i);
    }
    ends_close();
}

static void a_full_queue_overruns(const void *row)
{
    ends_open_queues(64);
    struct ibv_cq *cq = ends_make_cq(3, 0, 64);
    ends.sent.cq = cq;
    struct ibv_qp *qp = ends_make_qp(IBV_QPT_RC, NULL);
    ends_connect_itself(qp);
    entries_open(&ends.sent, cq);
    driver_open(&ends.near, qp);
    for (unsigned i = 0; i <= ends.sent.queue.cqe_cnt; i++) {
        driver_begin(&ends.near, NOP, SIGNALLED, 0);
        driver_end(&ends.near);
    }
    driver_ring(&ends.near);
    EXPECT(local_event(ends.context).event_type, ==, IBV_EVENT_CQ_ERR);
    ends_close();
}

/* A program that never says what it has consumed asks for that (UCX without assertions). */
static void overruns_may_be_ignored(const void *row)
{
    ends_open_queues(64);
    struct ibv_cq *cq = ends_make_cq(3, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 64);
    ends.sent.cq = cq;
    struct ibv_qp *qp = ends_make_qp(IBV_QPT_RC, NULL);
    ends_connect_itself(qp);
    entries_open(&ends.sent, cq);
    driver_open(&ends.near, qp);
    for (uint16_t i = 0; i < 1000; i++) {
        driver_begin(&ends.near, NOP, SIGNALLED, 0);
        driver_end(&ends.near);
        driver_ring(&ends.near);
        ends_expect_entry(&ends.sent, ENTRY_REQUEST, i);
        ends.sent.queue.dbrec[0] = 0;
    }
    local_no_event(ends.context);
    ends_close();
}

/* --- idle helpers */

/* The helper falls asleep between two doorbells, or is about to: pauses of 0 to 2 ms. */
static void no_doorbell_is_lost_while_the_helper_falls_asleep(const void *row)
{
    enum { POSTS = 1000 };
    unsigned seed = 7;
    ends_open_connection();
    for (unsigned i = 0; i < POSTS; i++) {
        driver_begin(&ends.near, NOP, SIGNALLED, 0);
        uint16_t index = driver_end(&ends.near);
        driver_ring(&ends.near);
        ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
        usleep(rand_r(&seed) % 200 * (i % 10 ? 1 : 10)); /* by chance */
    }
    ends_close();
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_by(const char *way)
{
    const char *setting = getenv("SOFTVERBS_DOORBELLS");
    return setting && !strcmp(setting, way);
}

static void an_idle_process_uses_no_processor(const void *row)
{
#if defined(__SANITIZE_THREAD__)
    if (is_by("signal"))
        harness_skip("a thread of ThreadSanitizer blocks SIGSEGV, so the helper polls");
#endif
    ends_open_connection();
    ends_send_inline(NOP, "");
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, 0);
    EXPECT_TRUE(!has_event(200));
    double before = processor_seconds();
    EXPECT_TRUE(!has_event(1000));
    EXPECT_TRUE(processor_seconds() - before < 0.05);
    ends_close();
}

/* The child of a fork has copies of the queues and registers: no store of it reaches the parent. */
static void the_child_of_a_fork_rings_no_bell(const void *row)
{
    ends_open_connection();
    ends_receive();
    pid_t child = fork();
    if (!child) {
        ends_send_inline(SEND, "of the child");
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
    ends_expect_nothing(&ends.received);
    uint16_t index = ends_send_inline(SEND, "of the parent");
    EXPECT(index, ==, 0);
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    EXPECT(memcmp(ends.memory + FAR, "of the parent", 13), ==, 0);
    ends_close();
}

/* /proc/PID/pagemap has 64 bits for each page; bit 57: userfaultfd notices a store into it. */
static bool register_is_closed(void)
{
    uint64_t page = 0;
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    off_t at = (off_t)((uintptr_t)ends.near.queues.bf.reg / (uintptr_t)getpagesize() * sizeof page);
    EXPECT(pread(file, &page, sizeof page, at), ==, (ssize_t)sizeof page);
    close(file);
    return page >> 57 & 1;
}

/* The helper opens them, too, but seldom: each 5 seconds. */
static void a_fork_leaves_the_registers_closed(const void *row)
{
    ends_open_connection();
    ends_receive();
    bool closed = false;
    for (unsigned try = 0; try < 2 && !closed; try++) {
        int status;
        PATIENTLY_WHILE(!register_is_closed());
        pid_t child = fork();
        if (!child)
            _exit(0);
        EXPECT(waitpid(child, &status, 0), ==, child);
        closed = register_is_closed();
    }
    EXPECT_TRUE(closed);
    ends_send_inline(SEND, "of the parent");
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    ends_close();
}

static void a_thousand_queue_pairs_share_the_registers(const void *row)
{
    enum { MANY = 1000 };
    static struct driver drivers[MANY];
    ends_open_queues(64);
    for (unsigned i = 0; i < MANY; i++) {
        struct ibv_qp *qp = ends_make_qp(IBV_QPT_RC, NULL);
        ends_connect_itself(qp);
        driver_open(&drivers[i], qp);
    }
    for (unsigned i = 0; i < MANY; i++) {
        driver_begin(&drivers[i], NOP, SIGNALLED, 0);
        driver_end(&drivers[i]);
        driver_ring(&drivers[i]);
        EXPECT(entries_next(&ends.sent).number, ==, drivers[i].qp->qp_num);
    }
    ends_close();
}

static void all(void)
{
    CASE(an_armed_queue_raises_an_event);
    CASE(solicited_events_are_for_solicited_messages);
    CASE(of_two_armings_the_wider_one_counts);
    CASE(a_full_queue_overruns);
    CASE(overruns_may_be_ignored);
    CASE(no_doorbell_is_lost_while_the_helper_falls_asleep);
    CASE(an_idle_process_uses_no_processor);
    CASE(the_child_of_a_fork_rings_no_bell);
    if (is_by("faults")) /* only this descriptor's calls reach another process's memory */
        CASE(a_fork_leaves_the_registers_closed);
    CASE(a_thousand_queue_pairs_share_the_registers);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
