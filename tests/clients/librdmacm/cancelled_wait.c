/* Threads that are cancelled where the program waits for events, and in calls that are not cancellation points. Exit
 * status 0 when no descriptor is left open and the host's table does not list the process any more: the library's
 * thread has ended. */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 100, MOMENT = 300 /* microseconds */ };

static void check(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static unsigned count(const char *directory)
{
    unsigned entries = 0;
    DIR *stream = opendir(directory);
    check(stream, directory);
    while (readdir(stream))
        entries++;
    closedir(stream);
    return entries;
}

/* Cancels it while it waits, or before; every other time the latter. */
static void cancel(void *(*body)(void *), void *argument, int round)
{
    pthread_t thread;
    void *ended = NULL;
    check(!pthread_create(&thread, NULL, body, argument), "pthread_create");
    usleep(round % 2 * MOMENT);
    check(!pthread_cancel(thread) && !pthread_join(thread, &ended), "pthread_cancel");
    check(ended == PTHREAD_CANCELED, "a thread that was cancelled returned");
}

static void *wait_for_connections(void *channel)
{
    struct rdma_cm_event *event;
    rdma_get_cm_event(channel, &event);
    return NULL;
}

static void *wait_for_completions(void *channel)
{
    struct ibv_cq *cq;
    void *context;
    ibv_get_cq_event(channel, &cq, &context);
    return NULL;
}

static void *wait_for_errors(void *context)
{
    struct ibv_async_event event;
    ibv_get_async_event(context, &event);
    return NULL;
}

/* When the thread ends, *made has the object that was made. */
static void *make_channel(void *made)
{
    pthread_cancel(pthread_self());
    *(struct rdma_event_channel **)made = rdma_create_event_channel();
    pthread_testcancel();
    return NULL;
}

static void cancel_connections(int round)
{
    struct rdma_event_channel *channel = rdma_create_event_channel(), *other = NULL;
    check(channel, "rdma_create_event_channel");
    cancel(wait_for_connections, channel, round);
    rdma_destroy_event_channel(channel);
    cancel(make_channel, &other, round);
    check(other, "rdma_create_event_channel of a thread that was cancelled");
    rdma_destroy_event_channel(other);
}

static void cancel_verbs(struct ibv_device *device, int round)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_comp_channel *channel = context ? ibv_create_comp_channel(context) : NULL;
    check(channel, "ibv_create_comp_channel");
    cancel(wait_for_completions, channel, round);
    cancel(wait_for_errors, context, round);
    check(!ibv_destroy_comp_channel(channel) && !ibv_close_device(context), "ibv_close_device");
}

int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    check(devices && *devices, "ibv_get_device_list");
    cancel_connections(1); /* librdmacm keeps what it opens first */
    cancel_verbs(*devices, 1);
    unsigned before = count("/proc/self/fd");
    for (int round = 0; round < ROUNDS; round++) {
        cancel_connections(round);
        cancel_verbs(*devices, round);
    }
    unsigned after = count("/proc/self/fd"), threads = count("/proc/self/task") - 2;
    printf("%u descriptors, then %u; %u threads\n", before, after, threads);
    return after == before && threads == 1 ? 0 : 1;
}
