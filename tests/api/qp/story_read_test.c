/* The stories of queue pairs are read while two threads post, poll, fail, reset and destroy them: by the requests that
 * `softverbs why`, `show` and `top` send, one after the other. Each answer is whole: its work requests are in order,
 * and complete. Under TSan it also shows that the thread which answers reads nothing that another thread writes.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "ipc/node.h"
#include "one_process.h"

enum { SOON = 200, ANSWERS = 100, ROUND = 40, LANES = 2, LANE_DESTROYS = 5, TEXT_MOST = 1 << 20 };

/* A queue pair that is connected with itself, and its thread. */
struct lane {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    uint64_t next; /* wr_id */
    atomic_uint *number;
};

/* Shared by this process and the reader. The reader is a process, as tools are: the library's thread in this one
 * answers. */
static struct shared {
    atomic_uint numbers[LANES]; /* of the queue pairs; 0: no queue pair just now */
    atomic_bool over;
    atomic_uint answers[LANES], errors; /* stories that had events, and those that had an error */
    char wrong[256];                    /* the first thing */
} * shared;

static struct lane lanes[LANES];

static struct lane open_lane(struct ibv_context *context, unsigned i)
{
    struct lane lane = {
        .number = &shared->numbers[i], .pd = ibv_alloc_pd(context), .cq = ibv_create_cq(context, 64, NULL, NULL, 0)};
    EXPECT_TRUE(lane.pd && lane.cq);
    lane.mr = local_register(lane.pd);
    lane.qp = local_loop(lane.pd, lane.cq);
    atomic_store(lane.number, lane.qp->qp_num);
    return lane;
}

static void close_lane(struct lane *lane)
{
    void *memory = local_memory(lane->mr);
    EXPECT(ibv_destroy_qp(lane->qp), ==, 0);
    EXPECT(ibv_destroy_cq(lane->cq), ==, 0);
    EXPECT(ibv_dereg_mr(lane->mr), ==, 0);
    EXPECT(ibv_dealloc_pd(lane->pd), ==, 0);
    free(memory);
}

static void post_send(struct lane *lane, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)local_memory(lane->mr), 8, lkey};
    struct ibv_send_wr wr = {.wr_id = lane->next++,
                             .opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    EXPECT(ibv_post_send(lane->qp, &wr, &bad), ==, 0);
}

/* A message to itself, to its two completions. */
static void exchange(struct lane *lane)
{
    struct ibv_sge sge = {(uintptr_t)local_memory(lane->mr) + 64, 8, lane->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = lane->next, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_recv(lane->qp, &receive, &bad), ==, 0);
    post_send(lane, lane->mr->lkey);
    EXPECT(local_poll(lane->cq).status, ==, IBV_WC_SUCCESS);
    EXPECT(local_poll(lane->cq).status, ==, IBV_WC_SUCCESS);
}

static void fail_and_reset(struct lane *lane)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    post_send(lane, lane->mr->lkey ^ 0x80);
    EXPECT(local_poll(lane->cq).status, ==, IBV_WC_LOC_PROT_ERR);
    EXPECT(ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE), ==, 0);
    local_initialize(lane->qp);
    local_receive_from(lane->qp, lane->qp->qp_num);
    local_send(lane->qp);
}

static void replace(struct lane *lane)
{
    atomic_store(lane->number, 0);
    EXPECT(ibv_destroy_qp(lane->qp), ==, 0);
    lane->qp = local_loop(lane->pd, lane->cq);
    atomic_store(lane->number, lane->qp->qp_num);
}

static void *exchange_until_over(void *lane)
{
    while (!atomic_load(&shared->over))
        exchange(lane);
    return NULL;
}

/* --- the reader */

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!*shared->wrong)
        vsnprintf(shared->wrong, sizeof shared->wrong, format, arguments);
    va_end(arguments);
    atomic_store(&shared->over, true);
}

/* Each wr_id of these events; the answer has them in the order of their times. `step` 0: some may be missing. */
static void check_order(const char *text, const char *event, unsigned step)
{
    char beginning[64];
    unsigned long long id, before = 0;
    bool first = true;
    snprintf(beginning, sizeof beginning, "\"event\":\"%s\",\"wr_id\":", event);
    for (const char *at = text; (at = strstr(at, beginning)); first = false, before = id) {
        at += strlen(beginning);
        id = strtoull(at, NULL, 10);
        if (!first && (step ? id != before + step : id <= before))
            complain("%s of wr_id %llu comes after wr_id %llu", event, id, before);
    }
}

static void read_story(const char *text, unsigned lane)
{
    check_order(text, "SEND_ENDED", 1);
    check_order(text, "RECEIVE_ENDED", 0);
    if (strstr(text, "\"events\":[{"))
        atomic_fetch_add(&shared->answers[lane], 1);
    if (strstr(text, "\"error\":{"))
        atomic_fetch_add(&shared->errors, 1);
}

static char *ask(unsigned slot, const char *request)
{
    static char text[TEXT_MOST];
    int fd = memfd_create("answer", MFD_CLOEXEC);
    ssize_t length = -1;
    errno = fd < 0 ? errno : node_ask(getenv("SOFTVERBS_DIR"), slot, request, fd, SOON * 1000);
    if (!errno)
        length = pread(fd, text, sizeof text - 1, 0);
    if (length < 0 && !atomic_load(&shared->over))
        complain("the request \"%s\" has no answer: %s", request, strerror(errno));
    close(fd);
    text[length < 0 ? 0 : length] = 0;
    return text;
}

/* Asks the one process that has devices open. */
static void ask_on(const struct node_entry *entry, void *unused)
{
    static const char *const others[] = {"", "events cq 0", "events process 0"};
    char request[32];
    for (unsigned i = 0; !atomic_load(&shared->over); i++) {
        unsigned number = atomic_load(&shared->numbers[i % LANES]);
        snprintf(request, sizeof request, "story %u", number);
        if (number)
            read_story(ask(entry->slot, request), i % LANES);
        if (i % 8 == 0)
            ask(entry->slot, others[i / 8 % COUNT(others)]);
    }
}

static void read_stories(void)
{
    char why[256] = "no process is in the directory";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    PATIENTLY_WHILE (!atomic_load(&shared->numbers[LANES - 1]) && !atomic_load(&shared->over))
        usleep(1000);
    node_list(getenv("SOFTVERBS_DIR"), ask_on, NULL, why, sizeof why);
    if (!atomic_load(&shared->over))
        complain("%s", why);
    _exit(0);
}

static bool has_read_enough(void)
{
    return atomic_load(&shared->answers[0]) >= ANSWERS && atomic_load(&shared->answers[1]) >= ANSWERS &&
           atomic_load(&shared->errors) > 0;
}

static pid_t begin_reader(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_TRUE(shared != MAP_FAILED);
    pid_t reader = fork();
    EXPECT(reader, >=, 0);
    if (!reader)
        read_stories();
    return reader;
}

static void stories_are_read_while_threads_post_and_poll(const void *row)
{
    pid_t reader = begin_reader();
    struct ibv_context *context = local_open();
    pthread_t other;
    alarm((unsigned)patience(SOON));
    for (unsigned i = 0; i < LANES; i++)
        lanes[i] = open_lane(context, i);
    EXPECT(pthread_create(&other, NULL, exchange_until_over, &lanes[1]), ==, 0);
    for (unsigned round = 1; !atomic_load(&shared->over) && !has_read_enough(); round++) {
        for (unsigned i = 0; i < ROUND; i++)
            exchange(&lanes[0]);
        if (round % LANE_DESTROYS)
            fail_and_reset(&lanes[0]);
        else
            replace(&lanes[0]);
    }
    atomic_store(&shared->over, true);
    EXPECT(pthread_join(other, NULL), ==, 0);
    EXPECT(waitpid(reader, NULL, 0), ==, reader);
    for (unsigned i = 0; i < LANES; i++)
        close_lane(&lanes[i]);
    EXPECT(ibv_close_device(context), ==, 0);
    if (*shared->wrong)
        harness_fail(__FILE__, __LINE__, "%s", shared->wrong);
    EXPECT_TRUE(has_read_enough());
}

static void all(void)
{
    CASE(stories_are_read_while_threads_post_and_poll);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
