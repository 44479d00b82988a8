/* A process that opens, closes, forks or ends at a bad moment: neither it nor its child ever hangs or is refused. Each
 * test that depends on chance is tried for as long as API_ENDS_SECONDS says; by default for a moment. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "local_fixture.h"
#include "one_process.h"
#include "xrc_make.h"

enum { HUNG = 20, CHILD_GOOD = 7, HELPER_NOT_HELD = 8 };

#if defined(__SANITIZE_THREAD__)
enum { THREADS_IN_CHILDREN = 0 };
#else
enum { THREADS_IN_CHILDREN = 1 };
#endif

/* AddressSanitizer of GCC 12 releases no lock of its allocator and its list of threads in the child of a fork: the child
 * waits for ever in malloc or pthread_create, in a program without verbs, too (4 of 1,083 forks). The other builds find
 * a hang of ours. */
#if defined(__SANITIZE_ADDRESS__)
enum { CHILDREN_MAY_HANG = 1 };
#else
enum { CHILDREN_MAY_HANG = 0 };
#endif

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double until(void)
{
    const char *seconds = getenv("API_ENDS_SECONDS");
    double span = seconds ? atof(seconds) : 0.7;
    alarm((unsigned)patience((int)span + 60));
    return now_seconds() + span;
}

/* A child that never outlives this process. */
static pid_t make_child(void)
{
    pid_t parent = getpid(), child = fork();
    if (!child && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
        _exit(1);
    return child;
}

/* Returns the child's exit status, or -1 when it had to be killed. */
static int wait_for(pid_t child)
{
    int status;
    for (double hung = now_seconds() + patience(HUNG); now_seconds() < hung; usleep(500))
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static struct ibv_context *try_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    ibv_free_device_list(list);
    return context;
}

/* -- opening while the last device closes */

struct doors {
    atomic_bool stop;
    atomic_uint refused;
};

static void *open_and_close(void *argument)
{
    struct doors *doors = argument;
    while (!doors->stop) {
        struct ibv_context *context = try_open();
        if (context)
            ibv_close_device(context);
        else
            doors->refused++;
    }
    return NULL;
}

static void two_threads_open_and_close_as_they_like(const void *row)
{
    struct doors doors = {0};
    pthread_t threads[2];
    double end = until();
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&threads[i], NULL, open_and_close, &doors), ==, 0);
    while (now_seconds() < end)
        usleep(1000);
    doors.stop = true;
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_join(threads[i], NULL), ==, 0);
    EXPECT(doors.refused, ==, 0);
}

static void a_child_that_was_forked_while_a_device_closed_opens_it(const void *row)
{
    struct doors doors = {0};
    pthread_t thread;
    if (!THREADS_IN_CHILDREN)
        harness_skip("ThreadSanitizer lets no child start threads");
    double end = until();
    unsigned good = 0;
    EXPECT(pthread_create(&thread, NULL, open_and_close, &doors), ==, 0);
    for (int i = 0; now_seconds() < end; i++) {
        usleep(100 + (unsigned)i * 37 % 900);
        pid_t child = make_child();
        if (!child)
            _exit(try_open() ? CHILD_GOOD : 1);
        int left = wait_for(child);
        EXPECT_TRUE(left == CHILD_GOOD || (left == -1 && CHILDREN_MAY_HANG));
        good += left == CHILD_GOOD;
    }
    doors.stop = true;
    EXPECT(pthread_join(thread, NULL), ==, 0);
    EXPECT(doors.refused, ==, 0);
    EXPECT(good, >, 0);
}

/* Objects that the child makes of its copy of the parent's context could reach no peer: (reason 355), whether or not
 * the copy has queue pairs. A queue pair was made all the same where there had been one, and work that was posted to it
 * never ended. */
static void a_child_makes_queue_pairs_of_a_context_of_its_own(const void *row)
{
    if (!THREADS_IN_CHILDREN)
        harness_skip("ThreadSanitizer lets no child start threads");
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1}};
    for (int round = 0; round < 2; round++) {
        pid_t child = make_child();
        if (!child) {
            EXPECT_ERRNO(ibv_create_qp(pd, &attr), ENODEV);
            struct ibv_context *own = try_open();
            struct ibv_pd *own_pd = ibv_alloc_pd(own);
            struct ibv_cq *own_cq = ibv_create_cq(own, 8, NULL, NULL, 0);
            struct ibv_mr *mr = local_register(own_pd);
            struct ibv_qp *qp = local_loop(own_pd, own_cq);
            struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
            struct ibv_send_wr *bad, write = {.sg_list = &sge,
                                              .num_sge = 1,
                                              .opcode = IBV_WR_RDMA_WRITE,
                                              .send_flags = IBV_SEND_SIGNALED,
                                              .wr.rdma = {(uintptr_t)mr->addr + 64, mr->rkey}};
            EXPECT(ibv_post_send(qp, &write, &bad), ==, 0);
            EXPECT(local_poll(own_cq).status, ==, IBV_WC_SUCCESS);
            _exit(CHILD_GOOD);
        }
        EXPECT(wait_for(child), ==, CHILD_GOOD);
        EXPECT_TRUE(ibv_create_qp(pd, &attr)); /* the second child's copy has one */
    }
    EXPECT(ibv_close_device(context), ==, 0);
}

/* -- the end of a process */

static void on_signal(int signal)
{
    exit(CHILD_GOOD);
}

/* The queue pair's receives complete with wr_id 0. */
static void receive_and_send(const struct fixture *fixture, struct ibv_qp *qp, uint64_t id, size_t offset)
{
    struct ibv_sge sge = {(uintptr_t)fixture->memory + offset, 64, fixture->mr->lkey}, room = sge;
    room.addr += 512;
    struct ibv_recv_wr receive = {.wr_id = 0, .sg_list = &room, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = id,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    ibv_post_recv(qp, &receive, &bad_receive);
    ibv_post_send(qp, &send, &bad);
}

/* Messages to itself, for ever, once it has said so: the thread is nearly always inside of verbs. */
static void be_busy(int tell)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    struct ibv_wc wc;
    if (write(tell, "", 1) != 1)
        _exit(1);
    for (int out = 0;;) {
        for (; out < 4; out++)
            receive_and_send(&fixture, qp, 1, 0);
        if (ibv_poll_cq(fixture.cq, 1, &wc) > 0 && wc.wr_id == 1)
            out--;
    }
}

/* A child that is busy: it is past all malloc, in which no process may end so. */
static pid_t make_busy_child(void)
{
    int ends[2];
    char byte;
    EXPECT(pipe(ends), ==, 0);
    pid_t child = make_child();
    if (!child) {
        signal(SIGUSR1, on_signal);
        be_busy(ends[1]);
    }
    close(ends[1]);
    EXPECT(read(ends[0], &byte, 1), ==, 1);
    close(ends[0]);
    return child;
}

/* Not one of the functions that a handler may call (signal-safety(7)), yet programs do, and it works with adapters. */
static void exit_in_a_signal_handler_ends_the_process(const void *row)
{
    double end = until(), slowest = 0;
    for (int i = 0; now_seconds() < end || i < 30; i++) {
        pid_t child = make_busy_child();
        usleep((unsigned)i * 137 % 5000);
        double before = now_seconds();
        kill(child, SIGUSR1);
        EXPECT(wait_for(child), ==, CHILD_GOOD);
        if (now_seconds() - before > slowest)
            slowest = now_seconds() - before;
    }
    EXPECT(slowest * 1000, <, 5000);
}

static void exit_within_a_batch_of_work_requests_ends_the_process(const void *row)
{
    pid_t child = make_child();
    if (!child) {
        struct fixture fixture = fixture_open();
        struct ibv_qp_init_attr_ex init = {.send_cq = fixture.cq,
                                           .recv_cq = fixture.cq,
                                           .qp_type = IBV_QPT_UD,
                                           .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                           .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                           .pd = fixture.pd,
                                           .send_ops_flags = IBV_QP_EX_WITH_SEND};
        ibv_wr_start(ibv_qp_to_qp_ex(ibv_create_qp_ex(fixture.context, &init)));
        exit(CHILD_GOOD);
    }
    EXPECT(wait_for(child), ==, CHILD_GOOD);
}

static struct fixture late_fixture;
static struct ibv_qp *late_qp;

static void clean_up_late(void)
{
    union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 9}};
    struct ibv_qp *datagrams = fixture_qp(&late_fixture, IBV_QPT_UD);
    ibv_attach_mcast(datagrams, &group, 0);
    bool good = !ibv_destroy_qp(late_qp) && !ibv_destroy_qp(datagrams) && !ibv_destroy_cq(late_fixture.cq);
    _exit(good && !ibv_close_device(late_fixture.context) ? CHILD_GOOD : 1);
}

/* A library that was opened by dlopen and does not name libibverbs as its need is ended after libibverbs. */
static void destructors_that_run_behind_ours_may_destroy(const void *row)
{
    pid_t child = make_child();
    if (!child) {
        void *library = dlopen(LAST_LIBRARY, RTLD_NOW);
        void (**last)(void) = library ? (void (**)(void))dlsym(library, "last_of_all") : NULL;
        if (!last)
            _exit(2);
        late_fixture = fixture_open();
        late_qp = local_loop(late_fixture.pd, late_fixture.cq);
        fixture_write(&late_fixture, late_qp, 4);
        *last = clean_up_late;
        exit(3);
    }
    EXPECT(wait_for(child), ==, CHILD_GOOD);
}

/* -- a helper thread that does not end */

/* The thread of the process that the library named; 0: no such thread. */
static pid_t find_helper(pid_t process)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    pid_t found = 0;
    for (struct dirent *entry; tasks && !found && (entry = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/comm", (int)process, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && !strcmp(name, "softverbs\n"))
            found = atoi(entry->d_name);
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* Holds a thread, as a debugger does that looks at one thread. Ends with the process. */
static void hold(pid_t thread, int ready)
{
    bool held = !ptrace(PTRACE_SEIZE, thread, 0, 0) && !ptrace(PTRACE_INTERRUPT, thread, 0, 0) &&
                waitpid(thread, NULL, __WALL) == thread;
    if (write(ready, held ? "h" : "n", 1) == 1 && held)
        waitpid(thread, NULL, __WALL);
    _exit(0);
}

/* The device is closed and opened again while the helper is held. Waiting for it at each opening takes a minute. */
static void close_with_a_helper_that_is_held(void)
{
    enum { OPENINGS = 20 };
    char held = 0;
    int ready[2];
    struct ibv_context *context = local_open();
    pid_t process = getpid(), helper;
    while (!(helper = find_helper(process)))
        sched_yield();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t debugger = pipe(ready) ? -1 : fork();
    if (!debugger)
        hold(helper, ready[1]);
    if (debugger < 0 || read(ready[0], &held, 1) != 1 || held != 'h')
        _exit(HELPER_NOT_HELD);
    ibv_close_device(context);
    double before = now_seconds();
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (int i = 0; i < OPENINGS; i++)
        if (ibv_open_device(list[0]) || errno != EBUSY)
            _exit(1);
    exit(now_seconds() - before < OPENINGS ? CHILD_GOOD : 2);
}

static unsigned count_sockets(void)
{
    unsigned count = 0;
    DIR *directory = opendir(getenv("SOFTVERBS_DIR"));
    EXPECT_TRUE(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += strstr(entry->d_name, ".sock") != NULL;
    closedir(directory);
    return count;
}

static void a_helper_that_never_ends_is_waited_for_once_and_leaves_nothing(const void *row)
{
    pid_t child = make_child();
    if (!child)
        close_with_a_helper_that_is_held();
    int status = wait_for(child);
    if (status == HELPER_NOT_HELD)
        printf("# this machine permits no ptrace(2)\n");
    else
        EXPECT(status, ==, CHILD_GOOD);
    EXPECT(count_sockets(), ==, 0); /* before a later process removes what one left that has ended */
}

/* -- the child of a fork */

/* The objects of a program that destroys all in its destructors, in whatever process they run. */
struct estate {
    struct fixture fixture;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mw *mw;
    struct ibv_wq *wq;
};

static struct estate make_estate(void)
{
    struct estate estate = {.fixture = fixture_open()};
    estate.channel = ibv_create_comp_channel(estate.fixture.context);
    estate.cq = ibv_create_cq(estate.fixture.context, 64, NULL, estate.channel, 0);
    estate.srq = fixture_srq(&estate.fixture, 16);
    estate.qp = local_loop(estate.fixture.pd, estate.cq);
    estate.mw = ibv_alloc_mw(estate.fixture.pd, IBV_MW_TYPE_1);
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = estate.fixture.pd, .cq = estate.cq};
    estate.wq = ibv_create_wq(estate.fixture.context, &init);
    EXPECT_TRUE(estate.channel && estate.cq && estate.mw && estate.wq);
    return estate;
}

static int destroy_estate(const struct estate *estate)
{
    int error = ibv_destroy_qp(estate->qp);
    error |= ibv_destroy_wq(estate->wq);
    error |= ibv_destroy_srq(estate->srq);
    error |= ibv_destroy_cq(estate->cq);
    error |= ibv_destroy_comp_channel(estate->channel);
    error |= ibv_dealloc_mw(estate->mw);
    error |= ibv_dereg_mr(estate->fixture.mr);
    return error | ibv_close_device(estate->fixture.context);
}

static int destroy_in_a_child(const struct estate *estate)
{
    pid_t child = make_child();
    if (!child)
        _exit(destroy_estate(estate) ? 1 : CHILD_GOOD);
    return wait_for(child);
}

static bool is_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 2000) == 1;
}

static void a_child_that_destroys_leaves_the_parents_events(const void *row)
{
    struct estate estate = make_estate();
    struct ibv_async_event event;
    struct ibv_cq *cq;
    void *context;
    EXPECT(ibv_req_notify_cq(estate.cq, 0), ==, 0);
    receive_and_send(&estate.fixture, estate.qp, 1, 0);
    EXPECT_TRUE(is_readable(estate.channel->fd));
    EXPECT(ibv_modify_srq(estate.srq, &(struct ibv_srq_attr){.srq_limit = 8}, IBV_SRQ_LIMIT), ==, 0);
    EXPECT_TRUE(is_readable(estate.fixture.context->async_fd));
    EXPECT(destroy_in_a_child(&estate), ==, CHILD_GOOD);
    EXPECT_TRUE(is_readable(estate.channel->fd));
    EXPECT(ibv_get_cq_event(estate.channel, &cq, &context), ==, 0);
    EXPECT_TRUE(is_readable(estate.fixture.context->async_fd));
    EXPECT(ibv_get_async_event(estate.fixture.context, &event), ==, 0);
    EXPECT(destroy_in_a_child(&estate), ==, CHILD_GOOD); /* which need not wait for the parent's acknowledgements */
    ibv_ack_cq_events(cq, 1);
    ibv_ack_async_event(&event);
    void *memory = estate.fixture.memory;
    EXPECT(destroy_estate(&estate), ==, 0);
    free(memory);
}

struct worker {
    const struct estate *estate;
    atomic_bool stop;
    struct ibv_qp *qp;
    size_t offset; /* of its memory */
};

/* Inside of all the locks of the data path. */
static void *work_for_ever(void *argument)
{
    struct worker *worker = argument;
    const struct estate *estate = worker->estate;
    struct ibv_wc wc;
    for (int out = 0; !worker->stop;) {
        for (; out < 8; out++)
            receive_and_send(&estate->fixture, worker->qp, 1, worker->offset);
        ibv_req_notify_cq(estate->cq, 0);
        if (ibv_poll_cq(estate->cq, 1, &wc) > 0 && wc.wr_id == 1)
            out--;
    }
    return NULL;
}

static void children_of_a_busy_process_destroy_what_they_inherit(const void *row)
{
    struct estate estate = make_estate();
    struct worker workers[2] = {{&estate, false, estate.qp, 0},
                                {&estate, false, local_loop(estate.fixture.pd, estate.cq), 1024}};
    pthread_t threads[2];
    double end = until();
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&threads[i], NULL, work_for_ever, &workers[i]), ==, 0);
    for (int i = 0; now_seconds() < end || i < 50; i++) {
        usleep(500 + (unsigned)i * 37 % 900);
        pid_t child = make_child();
        if (!child) {
            int error = ibv_destroy_qp(workers[1].qp);
            _exit(error | destroy_estate(&estate) ? 1 : CHILD_GOOD);
        }
        EXPECT(wait_for(child), ==, CHILD_GOOD);
    }
    for (int i = 0; i < 2; i++) {
        workers[i].stop = true;
        EXPECT(pthread_join(threads[i], NULL), ==, 0);
    }
    EXPECT(ibv_destroy_qp(workers[1].qp), ==, 0);
    void *memory = estate.fixture.memory;
    while (is_readable(estate.channel->fd) && estate.cq) {
        struct ibv_cq *cq;
        void *context;
        EXPECT(ibv_get_cq_event(estate.channel, &cq, &context), ==, 0);
        ibv_ack_cq_events(cq, 1);
    }
    EXPECT(destroy_estate(&estate), ==, 0);
    free(memory);
}

/* The domain ends with the last process that has opened it, whatever children of it live on. */
static void an_XRC_domain_does_not_outlive_its_process_in_a_child(const void *row)
{
    char path[] = "/tmp/softverbs-domain-XXXXXX";
    int fd = mkstemp(path), ready[2], done[2];
    char byte;
    EXPECT(unlink(path), ==, 0);
    EXPECT_TRUE(!pipe(ready) && !pipe(done));
    pid_t parent = make_child();
    if (!parent) {
        if (!xrc_make_domain(local_open(), fd, O_CREAT))
            _exit(1);
        if (!fork()) { /* lives until the pipe is closed */
            close(done[1]);
            _exit(write(ready[1], "r", 1) != 1 || read(done[0], &byte, 1));
        }
        _exit(read(ready[0], &byte, 1) == 1 ? CHILD_GOOD : 1);
    }
    EXPECT(wait_for(parent), ==, CHILD_GOOD);
    struct ibv_context *context = local_open();
    EXPECT_ERRNO(xrc_make_domain(context, fd, 0), EAGAIN);
    close(done[1]);
    close(done[0]);
    close(ready[0]);
    close(ready[1]);
    close(fd);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void all(void)
{
    CASE(exit_in_a_signal_handler_ends_the_process);
    CASE(exit_within_a_batch_of_work_requests_ends_the_process);
    CASE(destructors_that_run_behind_ours_may_destroy);
    CASE(a_helper_that_never_ends_is_waited_for_once_and_leaves_nothing);
    CASE(two_threads_open_and_close_as_they_like);
    CASE(a_child_that_was_forked_while_a_device_closed_opens_it);
    CASE(a_child_makes_queue_pairs_of_a_context_of_its_own);
    CASE(a_child_that_destroys_leaves_the_parents_events);
    CASE(children_of_a_busy_process_destroy_what_they_inherit);
    CASE(an_XRC_domain_does_not_outlive_its_process_in_a_child);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
