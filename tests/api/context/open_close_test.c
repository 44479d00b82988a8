/* Devices are opened and closed, processes fork, in one process and without a second end. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "end_objects.h"
#include "harness.h"
#include "one_process.h"

#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

/* Sends to a queue pair that does not exist: the timer is set, and the helper woken for it. */
static void post_into_the_void(struct ibv_context *context)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT_TRUE(qp);
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), ==, 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0xfffffe};
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), ==, 0);
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
           ==, 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 1, .retry_cnt = 7};
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC),
           ==, 0);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
}

/* The helper must notice the end at every moment: it may just have read its doorbell. */
static void a_device_is_closed_while_its_helper_wakes(const void *row)
{
    enum { TIMES = THREAD_SANITIZER ? 200 : 1000, LONGEST = 20000 };
    for (int i = 0; i < TIMES; i++) {
        struct ibv_context *context = local_open();
        post_into_the_void(context);
        for (volatile int wait = 0; wait < LONGEST / TIMES * i; wait++)
            ;
        EXPECT(ibv_close_device(context), ==, 0);
    }
}

static int count_descriptors(void)
{
    int count = 0;
    for (int descriptor = 0; descriptor < 512; descriptor++)
        count += fcntl(descriptor, F_GETFD) >= 0;
    return count;
}

static atomic_uint joins_tried;
static atomic_bool helper_starves; /* it ends later than the library waits for it */

/* The library calls this one instead of the C library's. */
__attribute__((visibility("default"))) int pthread_tryjoin_np(pthread_t thread, void **result)
{
    int (*join)(pthread_t, void **) = dlsym(RTLD_NEXT, "pthread_tryjoin_np");
    atomic_fetch_add(&joins_tried, 1);
    return atomic_load(&helper_starves) ? EBUSY : join(thread, result);
}

/* Ends the starvation when ibv_open_device waits for the helper's end. */
static void *end_starvation(void *unused)
{
    unsigned before = atomic_load(&joins_tried);
    PATIENTLY_WHILE (atomic_load(&joins_tried) < before + 5)
        sched_yield();
    atomic_store(&helper_starves, false);
    return unused;
}

/* On a busy machine the helper gets no processor for the 3 seconds after which ibv_close_device continues without it,
 * nor at once when the program opens the device again, which has to wait for it: a process is on a host once. */
static void a_device_is_opened_again_whose_helper_ended_late(const void *row)
{
    pthread_t thread;
    int before = count_descriptors();
    struct ibv_context *context = local_open();
    atomic_store(&helper_starves, true);
    EXPECT(ibv_close_device(context), ==, 0);
    EXPECT_TRUE(count_descriptors() > before); /* it continued without the helper */
    pthread_create(&thread, NULL, end_starvation, NULL);
    for (int i = 0; i < 3; i++)
        EXPECT(ibv_close_device(local_open()), ==, 0);
    pthread_join(thread, NULL);
    EXPECT(count_descriptors(), ==, before);
}

static void contexts_of_one_device_are_independent(const void *row)
{
    struct ibv_context *contexts[10];
    for (size_t i = 0; i < COUNT(contexts); i++)
        contexts[i] = local_open();
    for (size_t i = 0; i < COUNT(contexts); i++) {
        struct ibv_pd *pd = ibv_alloc_pd(contexts[i]);
        EXPECT_TRUE(pd);
        for (size_t other = i; other < COUNT(contexts); other++)
            EXPECT_TRUE(contexts[other]->async_fd >= 0 &&
                        (other == i || contexts[other]->async_fd != contexts[i]->async_fd));
        EXPECT(ibv_dealloc_pd(pd), ==, 0);
        EXPECT(ibv_close_device(contexts[i]), ==, 0);
    }
}

struct loop {
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
};

static int write_to_itself(const struct loop *loop)
{
    struct ibv_sge sge = {(uintptr_t)local_memory(loop->mr), 8, loop->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.rkey = loop->mr->rkey;
    wr.wr.rdma.remote_addr = sge.addr;
    return ibv_post_send(loop->qp, &wr, &bad);
}

/* A thread that is cancelled leaves its frame by no return: AddressSanitizer would find what it had put around the
 * variables there when the thread's end uses that stack once more, which depends on the processor. */
#define LEFT_BY_CANCELLATION __attribute__((no_sanitize("address")))

/* Each write raises an event, which is a system call under locks. */
LEFT_BY_CANCELLATION static void *write_for_ever(void *argument)
{
    const struct loop *loop = argument;
    struct ibv_wc wc;
    for (;; pthread_testcancel()) {
        ibv_req_notify_cq(loop->cq, 0);
        write_to_itself(loop);
        ibv_poll_cq(loop->cq, 1, &wc);
    }
    return NULL;
}

/* pthreads(7) lists what may be a cancellation point. Verbs that post and poll are not cancellation points: a thread
 * that ended there would keep its locks. */
static void a_thread_that_is_cancelled_leaves_no_lock_behind(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, channel, 0);
    struct loop loop = {local_loop(pd, cq), cq, local_register(pd)};
    struct ibv_wc wc;
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, write_for_ever, &loop), ==, 0);
        nanosleep(&(struct timespec){.tv_nsec = 50000 + 1000 * i}, NULL);
        EXPECT(pthread_cancel(thread), ==, 0);
        EXPECT(pthread_join(thread, NULL), ==, 0);
        while (write_to_itself(&loop)) /* its place is free when an earlier one was polled */
            ibv_poll_cq(cq, 1, &wc);
        EXPECT(local_poll(cq).status, ==, IBV_WC_SUCCESS);
    }
    void *memory = local_memory(loop.mr);
    EXPECT(ibv_close_device(context), ==, 0);
    free(memory);
}

LEFT_BY_CANCELLATION static void *open_for_ever(void *argument)
{
    const struct loop *loop = argument;
    struct ibv_context *context = loop->qp->context;
    for (;; pthread_testcancel()) {
        struct ibv_context *other = ibv_open_device(context->device);
        struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
        struct ibv_mr *mr = ibv_reg_mr(loop->qp->pd, local_memory(loop->mr), 8, IBV_ACCESS_LOCAL_WRITE);
        ibv_dereg_mr(mr);
        ibv_destroy_comp_channel(channel);
        ibv_close_device(other);
    }
    return NULL;
}

/* Nor are those that make objects, whatever system calls they make: a thread that ended there would leave descriptors
 * open, and once left a stream on its stack in the C library's list, which then crashed at exit. */
static void a_thread_that_is_cancelled_leaves_no_half_object(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    struct loop loop = {local_loop(pd, cq), cq, local_register(pd)};
    int before = count_descriptors();
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, open_for_ever, &loop), ==, 0);
        nanosleep(&(struct timespec){.tv_nsec = 20000 + 1000 * i}, NULL);
        EXPECT(pthread_cancel(thread), ==, 0);
        EXPECT(pthread_join(thread, NULL), ==, 0);
    }
    EXPECT(count_descriptors(), ==, before);
    fflush(NULL);
    void *memory = local_memory(loop.mr);
    EXPECT(ibv_close_device(context), ==, 0);
    free(memory);
}

/* -- limits */

/* The null region would be one of 16 MiB, and a context one of a line. Their growing would send SIGXFSZ. */
static void a_file_size_limit_refuses_what_needs_a_file(const void *row)
{
    pid_t child = fork();
    if (!child) {
        struct rlimit limit = {1 << 20, RLIM_INFINITY};
        struct ibv_context *context = local_open();
        struct ibv_pd *pd = ibv_alloc_pd(context);
        EXPECT(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        EXPECT_TRUE(!ibv_alloc_null_mr(pd));
        limit.rlim_cur = 0;
        EXPECT(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        EXPECT_TRUE(!ibv_open_device(context->device));
        EXPECT(errno, ==, EFBIG);
        EXPECT(ibv_close_device(context), ==, 0);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
}

/* A program that closes all that is open, as some do that become daemons, closes what its device needs too. Nothing can
 * wake the helper any more then, and closing the device waited for it without end. */
static void a_device_whose_descriptors_are_gone_is_closed(const void *row)
{
    pid_t child = fork();
    if (!child) {
        struct ibv_context *context = local_open();
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* the helper sleeps */
        for (int descriptor = 3; descriptor < 1024; descriptor++)
            close(descriptor);
        alarm((unsigned)patience(30));
        ibv_close_device(context);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
}

enum { FILES_MOST = 120 };

struct files_of_its_own {
    const char *name;
    rlim_t limit; /* of open files */
    int files;
    int closed_most; /* by ibv_close_device, which closes its descriptors by their numbers */
};

/* Where numbers are high, only those that the program sees (cmd_fd, async_fd and the channel's) and the spare one,
 * which is low. */
static const struct files_of_its_own limits[] = {
    {"nothing_is_written_to_files_of_a_program_that_has_closed_all", 1024, 64, 4},
    {"nothing_is_written_to_files_of_a_program_of_few_descriptors_that_has_closed_all", 128, FILES_MOST, 16},
};

/* Exit status 0: the file that the program has opened in place of all that it had closed is as it was, and so are the
 * places where it reads. */
static int write_into_nothing(struct loop *loop, const struct files_of_its_own *row)
{
    char name[] = "/tmp/softverbs-own.XXXXXX", content[64] = "";
    int closed = 0, moved = 0, first = mkstemp(name), own[FILES_MOST];
    if (write(first, content, sizeof content) != sizeof content || close(first))
        return 2;
    close_range(3, ~0u, 0);
    for (int i = 0; i < row->files; i++)
        own[i] = open(name, O_RDWR | O_APPEND);
    unlink(name);
    ibv_req_notify_cq(loop->cq, 0);
    write_to_itself(loop);
    struct ibv_wc wc;
    for (int i = 0; i < 100 && !ibv_poll_cq(loop->cq, 1, &wc); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < row->files; i++)
        moved += lseek(own[i], 0, SEEK_CUR) != 0;
    ibv_close_device(loop->cq->context);
    for (int i = 0; i < row->files; i++)
        closed += fcntl(own[i], F_GETFD) < 0;
    return moved || lseek(own[row->files - 1], 0, SEEK_END) != sizeof content || closed > row->closed_most;
}

/* The library's own descriptors have high numbers, which new files don't get, or are looked at before they are written.
 */
static void nothing_is_written_to_files_of_a_program_that_has_closed_all(const void *row)
{
    const struct files_of_its_own *own = row;
    if (THREAD_SANITIZER && own->files == FILES_MOST)
        harness_skip("ThreadSanitizer reports that the program opens files under numbers that another thread uses");
    pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){own->limit, own->limit});
        struct ibv_context *context = local_open();
        struct ibv_pd *pd = ibv_alloc_pd(context);
        struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
        struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, channel, 0);
        struct loop loop = {local_loop(pd, cq), cq, local_register(pd)};
        alarm((unsigned)patience(30));
        _exit(write_into_nothing(&loop, own));
    }
    int status;
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
}

/* -- priorities */

struct hasty {
    struct ibv_qp *qp; /* connected with itself */
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel;
    struct ibv_mr *mr;
    double waited;
    bool forbidden; /* this user may start no such thread */
};

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool run_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return !sched_setaffinity(0, sizeof set, &set);
}

/* Sleeps until the first receive completes, and then spins for the second. */
static void *wait_in_haste(void *argument)
{
    struct hasty *hasty = argument;
    struct ibv_cq *cq;
    void *context;
    struct ibv_wc wc;
    if (ibv_get_cq_event(hasty->channel, &cq, &context))
        return NULL;
    ibv_ack_cq_events(cq, 1);
    double began = now_seconds();
    for (int got = 0; got < 2;)
        got += ibv_poll_cq(hasty->cq, 1, &wc) > 0;
    hasty->waited = now_seconds() - began;
    return hasty;
}

static void *send_two(void *argument)
{
    struct hasty *hasty = argument;
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad; /* unsignalled, empty */
    if (!run_on(1))
        return NULL;
    for (int i = 0; i < 2; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the other polls in vain meanwhile */
        if (ibv_post_send(hasty->qp, &wr, &bad))
            return NULL;
    }
    return hasty;
}

static bool start_hasty(pthread_t *thread, struct hasty *hasty)
{
    pthread_attr_t attr;
    struct sched_param priority = {.sched_priority = 10};
    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &priority);
    bool started = !pthread_create(thread, &attr, wait_in_haste, hasty);
    pthread_attr_destroy(&attr);
    return started;
}

static void receive_two(struct hasty *hasty)
{
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
    for (int i = 0; i < 2; i++)
        EXPECT(ibv_post_recv(hasty->qp, &wr, &bad), ==, 0);
    EXPECT(ibv_req_notify_cq(hasty->cq, 0), ==, 0);
}

/* False: the thread could not be started. */
static bool try_in_haste(struct hasty *hasty)
{
    pthread_t thread, sender;
    void *sent;
    receive_two(hasty);
    if (!start_hasty(&thread, hasty))
        return false;
    EXPECT(pthread_create(&sender, NULL, send_two, hasty), ==, 0);
    EXPECT(pthread_join(sender, &sent), ==, 0);
    EXPECT_TRUE(sent);
    EXPECT(pthread_join(thread, NULL), ==, 0);
    return true;
}

/* Five times. A poller that does not let the helper run keeps its processor for 950 ms of each second, which the kernel
 * allows threads of real-time priority. */
static bool is_let_go_on(void *context)
{
    struct hasty *hasty = context;
    double longest = 0;
    hasty->qp = local_loop(hasty->pd, hasty->cq); /* unsignalled sends keep their places */
    for (int i = 0; i < 5; i++) {
        hasty->forbidden = !try_in_haste(hasty);
        if (hasty->forbidden)
            return true;
        longest = hasty->waited > longest ? hasty->waited : longest;
    }
    return longest < 0.3;
}

/* The event wakes the thread while the helper, on the same processor, is still inside of the progress. */
static void a_poller_of_real_time_priority_lets_the_helper_go_on(const void *row)
{
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) || !CPU_ISSET(0, &before) || !CPU_ISSET(1, &before) || !run_on(0))
        harness_skip("it takes the first two processors");
    struct ibv_context *context = local_open();
    struct hasty hasty = {.channel = ibv_create_comp_channel(context), .pd = ibv_alloc_pd(context)};
    hasty.cq = ibv_create_cq(context, 16, NULL, hasty.channel, 0);
    bool good = patience_tries("a poller of real-time priority", 3, "other work has the helper's processor",
                               is_let_go_on, &hasty);
    EXPECT(ibv_close_device(context), ==, 0);
    EXPECT(sched_setaffinity(0, sizeof before, &before), ==, 0);
    if (hasty.forbidden)
        harness_skip("this user may start no thread of real-time priority");
    EXPECT_TRUE(good);
}

static void all(void)
{
    CASE(a_thread_that_is_cancelled_leaves_no_lock_behind);
    CASE(a_thread_that_is_cancelled_leaves_no_half_object);
    CASE(a_file_size_limit_refuses_what_needs_a_file);
    CASE(a_device_whose_descriptors_are_gone_is_closed);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        harness_run(limits[i].name, nothing_is_written_to_files_of_a_program_that_has_closed_all, &limits[i]);
    CASE(a_poller_of_real_time_priority_lets_the_helper_go_on);
    CASE(a_device_is_closed_while_its_helper_wakes);
    CASE(a_device_is_opened_again_whose_helper_ended_late);
    CASE(contexts_of_one_device_are_independent);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
