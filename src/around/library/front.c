#include "around/library/front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/static_lock.h"

/* -- the thread, which waits for all of the library's descriptors */

MUTEX_STATIC(watching, LOCK_FRONT);
static LIST_HEAD(, front) fronts;
static struct {
    unsigned process; /* as in struct front */
    bool runs;
    int wake[2];        /* a byte: the list has changed */
    struct stat status; /* the program may have closed the pipe, and the number may be another file's */
} watch;
static _Atomic pid_t thread;

enum { WATCHED_MOST = 4096 };

struct watched {
    void (*take)(const void *object);
    const void *object;
};

/* Returns how many there are; the first of `polls` is the pipe. */
static nfds_t list(struct pollfd *polls, struct watched *watched)
{
    const struct front *each;
    nfds_t count = 1;
    mutex_take(&watching);
    polls[0] = (struct pollfd){.fd = watch.wake[0], .events = POLLIN};
    LIST_FOREACH (each, &fronts, next) {
        if (each->process != watch.process)
            continue;
        if (count == WATCHED_MOST)
            break;
        watched[count] = (struct watched){each->take, each->object};
        polls[count++] = (struct pollfd){.fd = each->real, .events = POLLIN};
    }
    mutex_release(&watching);
    return count;
}

static bool pipe_is_there(void)
{
    struct stat status;
    return !fstat(watch.wake[0], &status) && status.st_dev == watch.status.st_dev &&
           status.st_ino == watch.status.st_ino;
}

static void *run(void *unused)
{
    static struct pollfd polls[WATCHED_MOST];
    static struct watched watched[WATCHED_MOST];
    char bytes[64];
    prctl(PR_SET_NAME, "softverbs-front");
    atomic_store(&thread, (pid_t)syscall(SYS_gettid));
    while (pipe_is_there()) {
        nfds_t count = list(polls, watched);
        if (poll(polls, count, -1) < 0 && errno != EINTR)
            break;
        if (polls[0].revents && pipe_is_there() && read(watch.wake[0], bytes, sizeof bytes) < 0 && errno != EAGAIN)
            break;
        for (nfds_t i = 1; i < count; i++)
            if (polls[i].revents)
                watched[i].take(watched[i].object);
    }
    atomic_store(&thread, 0);
    return unused;
}

/* No signal of the program is for the thread. */
static bool begin_thread(void)
{
    pthread_t begun;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool running = !pthread_create(&begun, NULL, run, NULL) && !pthread_detach(begun);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return running;
}

static bool begin_watch(void)
{
    lock_assert_held(&watching);
    if (watch.runs)
        return true;
    if (pipe2(watch.wake, O_CLOEXEC | O_NONBLOCK))
        return false;
    if (!fstat(watch.wake[0], &watch.status) && begin_thread())
        return watch.runs = true;
    close(watch.wake[0]);
    close(watch.wake[1]);
    return false;
}

static void wake(void)
{
    lock_assert_held(&watching);
    int before = errno;
    if (watch.runs && pipe_is_there() && write(watch.wake[1], "", 1) < 0) {
        /* it is full: the thread wakes up */
    }
    errno = before;
}

pid_t front_thread(void)
{
    return atomic_load(&thread);
}

void front_forked(void)
{
    if (watch.runs && pipe_is_there()) {
        close(watch.wake[0]);
        close(watch.wake[1]);
    }
    watch.runs = false;
    watch.process++; /* the parent takes the events of what it has made */
    atomic_store(&thread, 0);
}

/* -- descriptors */

/* Programs read the field plainly meanwhile, as an aligned word; ThreadSanitizer would call that a race. */
__attribute__((no_sanitize("thread"))) static void set_field(int *field, int value)
{
    __atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static bool joins(const struct front *front)
{
    int flags = fcntl(front->real, F_GETFL);
    return front->timer >= 0 && flags >= 0 && !fcntl(front->timer, F_SETFL, flags & O_NONBLOCK) &&
           !fcntl(front->real, F_SETFL, flags | O_NONBLOCK);
}

bool front_open(struct front *front, int *field, void (*take)(const void *object), const void *object)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    *front = (struct front){.real = *field, .timer = timer, .take = take, .object = object};
    mutex_take(&watching);
    bool joined = timer >= 0 && begin_watch() && joins(front);
    if (joined) {
        front->process = watch.process;
        LIST_INSERT_HEAD(&fronts, front, next);
        set_field(field, timer);
        wake();
    }
    mutex_release(&watching);
    int error = errno;
    if (!joined && timer >= 0)
        close(timer);
    errno = error;
    return joined;
}

void front_close(struct front *front)
{
    mutex_take(&watching);
    LIST_REMOVE(front, next);
    wake();
    mutex_release(&watching);
    close(front->timer);
}

bool front_is_nonblocking(int descriptor)
{
    return fcntl(descriptor, F_GETFL) & O_NONBLOCK;
}

int front_wait(int descriptor)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    return !front_is_nonblocking(descriptor) && poll(&wait, 1, -1) < 0 ? -1 : 0;
}

void front_ring(const struct front *front, nanos due)
{
    struct itimerspec at = {0};
    if (due != NANOS_NEVER) {
        at.it_value = (struct timespec){(time_t)(due / NANOS_SECOND), (long)(due % NANOS_SECOND)};
        at.it_value.tv_nsec += !due; /* a time of 0 would disarm it */
    }
    timerfd_settime(front->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void front_lend(struct front *front, int *field)
{
    front->lent++;
    set_field(field, front->real);
}

void front_return(struct front *front, int *field)
{
    if (!--front->lent)
        set_field(field, front->timer);
}

bool front_begin_taking(struct front *front, int *field)
{
    front->taking = !front->leaving;
    if (front->taking)
        front_lend(front, field);
    return front->taking;
}

void front_end_taking(struct front *front, int *field)
{
    front->taking = false;
    front_return(front, field);
}

void front_leave(struct front *front, int *field, struct mutex *owner)
{
    lock_assert_held(owner);
    front->leaving = true;
    while (front->taking) { /* as long as a call takes that does not wait */
        mutex_release(owner);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        mutex_take(owner);
    }
    front_lend(front, field);
}

void front_stay(struct front *front, int *field)
{
    front->leaving = false;
    front_return(front, field);
}
