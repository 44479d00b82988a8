/* A thread asks for events while its program ends: there is no event, and that is not an error. The streams of stdio
 * are written when all libraries have ended, so the program checks the thread's results in a stream's writer. Exit
 * status 0 when a command failed with EIO, a descriptor that does not wait returned EAGAIN, and one that waits did not
 * return. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/patience.h"

enum { STEP = 1000 /* microseconds */, STEPS_AT_REST = 100 };

static struct rdma_event_channel *channel;
static atomic_bool ended;
static atomic_int told = -1; /* errno of the call that does not wait */
static atomic_int made = -1; /* errno of a command */
static atomic_bool returned; /* whether the call that waits has returned, which it must not */

static void *ask(void *unused)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    while (!atomic_load(&ended))
        usleep(STEP);
    atomic_store(&made, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ? errno : 0);
    atomic_store(&told, rdma_get_cm_event(channel, &event) ? errno : 0);
    fcntl(channel->fd, F_SETFL, 0);
    rdma_get_cm_event(channel, &event);
    atomic_store(&returned, true);
    return unused;
}

static ssize_t look(void *unused, const char *bytes, size_t length)
{
    (void)unused, (void)bytes, (void)length;
    atomic_store(&ended, true);
    for (int waited = 0; waited < PATIENCE && atomic_load(&told) < 0; waited += STEP / 1000)
        usleep(STEP);
    for (int steps = 0; steps < STEPS_AT_REST && !atomic_load(&returned); steps++)
        usleep(STEP);
    fprintf(stderr, "told: %s; %s\n", strerror(atomic_load(&told)), atomic_load(&returned) ? "returned" : "waits");
    _exit(atomic_load(&made) == EIO && atomic_load(&told) == EAGAIN && !atomic_load(&returned) ? 0 : 1);
}

int main(void)
{
    static char buffer[BUFSIZ]; /* glibc writes through short ones */
    pthread_t thread;
    FILE *last = fopencookie(NULL, "w", (cookie_io_functions_t){.write = look});
    channel = rdma_create_event_channel();
    if (!last || !channel || fcntl(channel->fd, F_SETFL, O_NONBLOCK) || pthread_create(&thread, NULL, ask, NULL))
        return 2;
    setvbuf(last, buffer, _IOFBF, sizeof buffer);
    fputs("written when the program has ended", last);
    return 0;
}
