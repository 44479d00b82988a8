/* A program at its ends: around_ends cancel|exit|fork|last|many|twice. The calls are right, and each ends with status 0, but
 * for `exit`, which ends with 7 and an open device. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 10000 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;

static void need(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "around_ends: %s\n", what);
    exit(1);
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    need(context, "no device");
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = channel ? ibv_create_cq(context, 16, NULL, channel, 0) : NULL;
    need(pd && cq, "no queue");
}

static void close_device(void)
{
    need(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel) && !ibv_dealloc_pd(pd) && !ibv_close_device(context),
         "not closed");
}

/* A call within the cleanup of a thread that is cancelled. */
static void arm(void *unused)
{
    need(!ibv_req_notify_cq(cq, 0), "not armed");
}

static _Atomic int waiter; /* the thread's number, once it is about to wait */

static bool is_asleep(int thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'S';
}

static void *wait_for_event(void *unused)
{
    struct ibv_cq *which;
    void *user;
    waiter = (int)syscall(SYS_gettid);
    pthread_cleanup_push(arm, NULL);
    ibv_get_cq_event(channel, &which, &user);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(void)
{
    pthread_t thread;
    void *result;
    open_device();
    need(!ibv_req_notify_cq(cq, 0) && !pthread_create(&thread, NULL, wait_for_event, NULL), "no thread");
    while (!waiter || !is_asleep(waiter))
        sched_yield();
    need(!pthread_cancel(thread) && !pthread_join(thread, &result) && result == PTHREAD_CANCELED, "not cancelled");
    close_device();
}

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 1}, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    need(qp && !ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "no queue pair");
    return qp;
}

/* The child ends by exit, and its parent has the queue pair. */
static void fork_child(void)
{
    open_device();
    struct ibv_qp *qp = make_qp();
    pid_t child = fork();
    if (!child)
        exit(0);
    need(child > 0 && waitpid(child, NULL, 0) == child && !ibv_destroy_qp(qp), "no child");
    close_device();
}

static void make_many(void)
{
    static struct ibv_qp *qps[MANY];
    open_device();
    for (unsigned i = 0; i < MANY; i++)
        qps[i] = make_qp();
    for (unsigned i = 0; i < MANY; i++)
        need(!ibv_destroy_qp(qps[i]), "not destroyed");
    close_device();
}

/* Both handles of the library have the same functions. */
static void load_twice(void)
{
    void *one = dlopen("libibverbs.so.1", RTLD_NOW), *other = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    need(one && other && dlsym(one, "ibv_open_device") == dlsym(other, "ibv_open_device"), "two functions");
    dlclose(other);
    open_device();
    close_device();
    dlclose(one);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "cancel"))
        cancel();
    else if (!strcmp(mode, "many"))
        make_many();
    else if (!strcmp(mode, "fork"))
        fork_child();
    else if (!strcmp(mode, "twice"))
        load_twice();
    else if (!strcmp(mode, "last")) {
        open_device();
        close_device();
        pthread_exit(NULL); /* the process ends with its last thread */
    } else if (!strcmp(mode, "exit")) {
        open_device();
        _exit(7);
    } else
        need(false, "no such mode");
    return 0;
}
