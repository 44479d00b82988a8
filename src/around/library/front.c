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
static unsigned watched_count, process; /* process: as in struct front */
static struct {
    unsigned generation; /* of the thread that runs */
    bool runs;
    int wake[2];        /* a byte: the list has changed */
    struct stat status; /* the program may have closed the pipe, and the numbers may be another file's */
} watch;
static _Atomic pid_t thread;

enum { WATCHED_MOST = 4096 };

struct watched {
    void (*take)(const void *object);
    const void *object;
};

struct lists {
    struct pollfd polls[WATCHED_MOST + 1]; /* the first is the pipe */
    struct watched watched[WATCHED_MOST + 1];
    unsigned generation;
};

static bool is_of_pipe(int descriptor)
{
    struct stat status;
    return !fstat(descriptor, &status) && status.st_dev == watch.status.st_dev && status.st_ino == watch.status.st_ino;
}

static bool pipe_is_there(void)
{
    lock_assert_held(&watching);
    return is_of_pipe(watch.wake[0]) && is_of_pipe(watch.wake[1]);
}

static bool is_watched(const struct front *front)
{
    lock_assert_held(&watching);
    return front->watched && front->process == process;
}

/* Returns how many there are; 0: the thread is to end. */
static nfds_t list(struct lists *lists)
{
    const struct front *each;
    nfds_t count = 1;
    mutex_take(&watching);
    bool there = watch.runs && watch.generation == lists->generation && pipe_is_there();
    lists->polls[0] = (struct pollfd){.fd = watch.wake[0], .events = POLLIN};
    LIST_FOREACH (each, &fronts, next) {
        if (!is_watched(each) || count > WATCHED_MOST)
            continue;
        lists->watched[count] = (struct watched){each->take, each->object};
        lists->polls[count++] = (struct pollfd){.fd = each->real, .events = POLLIN};
    }
    mutex_release(&watching);
    return there ? count : 0;
}

/* Takes the bytes out of the pipe, if that is there still. */
static void take_wakes(const struct lists *lists)
{
    char bytes[64];
    mutex_take(&watching);
    if (watch.generation == lists->generation && pipe_is_there() &&
        read(watch.wake[0], bytes, sizeof bytes) < (ssize_t)sizeof bytes) {
        /* all are taken */
    }
    mutex_release(&watching);
}

static bool is_current(const struct lists *lists)
{
    lock_assert_held(&watching);
    return watch.runs && watch.generation == lists->generation;
}

static bool goes_on(const struct lists *lists)
{
    mutex_take(&watching);
    bool current = is_current(lists);
    mutex_release(&watching);
    return current;
}

static void note_begun(const struct lists *lists)
{
    mutex_take(&watching);
    if (is_current(lists))
        atomic_store(&thread, (pid_t)syscall(SYS_gettid));
    mutex_release(&watching);
}

static void note_ended(const struct lists *lists)
{
    mutex_take(&watching);
    if (is_current(lists)) {
        watch.runs = false;
        atomic_store(&thread, 0);
    }
    mutex_release(&watching);
}

static void *run(void *argument)
{
    struct lists *lists = argument;
    nfds_t count;
    prctl(PR_SET_NAME, "softverbs-front");
    note_begun(lists);
    while ((count = list(lists))) {
        if ((poll(lists->polls, count, -1) < 0 && errno != EINTR) || !goes_on(lists))
            break;
        if (lists->polls[0].revents)
            take_wakes(lists);
        for (nfds_t i = 1; i < count; i++)
            if (lists->polls[i].revents)
                lists->watched[i].take(lists->watched[i].object);
    }
    note_ended(lists);
    free(lists);
    return NULL;
}

/* No signal of the program is for the thread. */
static bool begin_thread(struct lists *lists)
{
    pthread_t begun;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = lists ? pthread_create(&begun, NULL, run, lists) : ENOMEM;
    if (!error)
        pthread_detach(begun);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        free(lists);
    errno = error ? error : errno;
    return !error;
}

/* A thread that sleeps for a pipe which is gone ends when it wakes up. */
static bool begin_watch(void)
{
    lock_assert_held(&watching);
    if (watch.runs && pipe_is_there())
        return true;
    if (pipe2(watch.wake, O_CLOEXEC | O_NONBLOCK))
        return false;
    struct lists *lists = calloc(1, sizeof *lists);
    if (lists)
        lists->generation = ++watch.generation;
    watch.runs = true; /* before the thread looks */
    if (!fstat(watch.wake[0], &watch.status) && begin_thread(lists))
        return true;
    int error = errno;
    watch.runs = false;
    close(watch.wake[0]);
    close(watch.wake[1]);
    errno = error;
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

static void set_watched(struct front *front, bool watched)
{
    lock_assert_held(&watching);
    watched_count += (unsigned)watched - (unsigned)front->watched;
    front->watched = watched;
    wake();
}

static bool finds_room(void)
{
    lock_assert_held(&watching);
    if (watched_count < WATCHED_MOST)
        return true;
    errno = EMFILE;
    return false;
}

bool front_open(struct front *front, int *field, void (*take)(const void *object), const void *object)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    *front = (struct front){
        .field = field, .real = *field, .timer = timer, .due = NANOS_NEVER, .take = take, .object = object};
    mutex_take(&watching);
    bool joined = timer >= 0 && finds_room() && begin_watch() && joins(front);
    if (joined) {
        front->process = process;
        LIST_INSERT_HEAD(&fronts, front, next);
        set_field(field, timer);
        set_watched(front, true);
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
    set_watched(front, false);
    LIST_REMOVE(front, next);
    mutex_release(&watching);
    front_ring(front, 0);
    close(front->timer);
}

bool front_is_inherited(const struct front *front)
{
    return front->process != process;
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

/* A child has the same timer as its parent, which uses it. A timer that is set anew can't be read for a moment, even
 * where its time is over. */
void front_ring(struct front *front, nanos due)
{
    struct itimerspec at = {0};
    due = front->failed ? 0 : due;
    if (front_is_inherited(front) || due == front->due)
        return;
    front->due = due;
    if (due != NANOS_NEVER) {
        at.it_value = (struct timespec){(time_t)(due / NANOS_SECOND), (long)(due % NANOS_SECOND)};
        at.it_value.tv_nsec += !due; /* a time of 0 would disarm it */
    }
    timerfd_settime(front->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void front_lend(struct front *front)
{
    front->lent++;
    set_field(front->field, front->real);
}

void front_return(struct front *front)
{
    if (!--front->lent)
        set_field(front->field, front->timer);
}

bool front_begin_taking(struct front *front, bool lends)
{
    if (front->leaving || front_is_inherited(front))
        return false;
    front->taking++;
    if (lends)
        front_lend(front);
    return true;
}

void front_end_taking(struct front *front, bool lends)
{
    front->taking--;
    if (lends)
        front_return(front);
}

static void set_watched_alone(struct front *front, bool watched)
{
    mutex_take(&watching);
    set_watched(front, watched);
    mutex_release(&watching);
}

/* The thread would not sleep any more. */
void front_fail(struct front *front)
{
    front->failed = true;
    set_watched_alone(front, false);
    front_ring(front, 0);
}

void front_leave(struct front *front, struct mutex *owner)
{
    lock_assert_held(owner);
    front->leaving = true;
    set_watched_alone(front, false);
    while (front->taking) { /* as long as a call takes that does not wait */
        mutex_release(owner);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        mutex_take(owner);
    }
    front_lend(front);
}

void front_stay(struct front *front)
{
    front->leaving = false;
    set_watched_alone(front, !front->failed);
    front_return(front);
}

/* Of calls that other threads of the parent make nobody returns. */
void front_forked(void)
{
    struct front *each;
    if (watch.runs && is_of_pipe(watch.wake[0]) && is_of_pipe(watch.wake[1])) {
        close(watch.wake[0]);
        close(watch.wake[1]);
    }
    watch.runs = false;
    process++; /* the parent takes the events of what it has made */
    watched_count = 0;
    atomic_store(&thread, 0);
    LIST_FOREACH (each, &fronts, next) {
        each->watched = false;
        if (each->lent && !each->leaving) /* the object may be gone */
            set_field(each->field, each->timer);
        each->lent = each->taking = 0;
    }
}
