#include "ipc/peer_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/uncancelled.h"

enum {
    THREADS_MOST = 64,
    MICROSECOND = 1000,
    LOOKS = 20000 * MICROSECOND, /* for many short windows, as other threads may wake up and sleep all the time; */
    SHORT = 40 * MICROSECOND,
    NAP = 20000 * MICROSECOND, /* then a long window, as a running thread may need this processor */
};

struct watched {
    int number, syscall, schedstat; /* the thread's files in /proc */
    uint64_t turns;                 /* how often it has come to a processor */
    bool sleeps;                    /* waits in another call */
};

struct watch {
    pid_t pid;
    long call;
    DIR *tasks;
    unsigned count;
    struct watched at[THREADS_MOST];
    char text[256];
};

static const char *watch_read(struct watch *watch, int file)
{
    ssize_t length = pread(file, watch->text, sizeof watch->text - 1, 0);
    watch->text[length > 0 ? length : 0] = 0;
    return watch->text;
}

/* The file has the number of the call that the thread waits in; "running" if it does not wait. */
static bool sleeps_elsewhere(struct watch *watch, const struct watched *thread)
{
    const char *text = watch_read(watch, thread->syscall);
    char *end;
    long number = strtol(text, &end, 10);
    return end != text && number >= 0 && number != watch->call;
}

/* The file has three numbers, and the turns are the last. 0: this kernel does not count. */
static uint64_t turns_of(struct watch *watch, const struct watched *thread)
{
    const char *last = strrchr(watch_read(watch, thread->schedstat), ' ');
    return last ? strtoull(last, NULL, 10) : 0;
}

/* Looks first how often each thread has run, then whether it sleeps: a thread that sleeps at two looks, and has the
 * same number, did not run in between. (In the other order, one that woke up between the two would have its turn
 * counted, and could execute something and sleep again.) Returns how many threads are not of that kind. */
static unsigned watch_look(struct watch *watch)
{
    unsigned others = 0;
    for (unsigned i = 0; i < watch->count; i++) {
        struct watched *thread = &watch->at[i];
        bool slept = thread->sleeps;
        uint64_t before = thread->turns;
        thread->turns = turns_of(watch, thread);
        thread->sleeps = sleeps_elsewhere(watch, thread);
        others += !slept || !thread->sleeps || !before || before != thread->turns;
    }
    return others;
}

/* The number of the next thread in the list; 0: its end. */
static int watch_next(struct watch *watch)
{
    const struct dirent *entry;
    do
        entry = readdir(watch->tasks);
    while (entry && entry->d_name[0] == '.');
    return entry ? atoi(entry->d_name) : 0;
}

/* Returns true if the watched threads are all threads of the list. */
static bool watch_is_complete(struct watch *watch)
{
    unsigned i = 0;
    rewinddir(watch->tasks);
    while (i < watch->count && watch_next(watch) == watch->at[i].number)
        i++;
    return i == watch->count && !watch_next(watch);
}

static int watch_open_file(const struct watch *watch, int thread, const char *file)
{
    char path[32];
    snprintf(path, sizeof path, "%d/%s", thread, file);
    return openat(dirfd(watch->tasks), path, O_RDONLY | O_CLOEXEC);
}

static bool watch_open(struct watch *watch)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)watch->pid);
    watch->tasks = watch->pid > 0 ? opendir(path) : NULL;
    if (!watch->tasks)
        return false;
    for (int number; watch->count < THREADS_MOST && (number = watch_next(watch));) {
        struct watched *thread = &watch->at[watch->count++];
        *thread = (struct watched){number, watch_open_file(watch, number, "syscall"),
                                   watch_open_file(watch, number, "schedstat")};
        if (thread->syscall < 0 || thread->schedstat < 0)
            return false;
    }
    return watch->count;
}

static void watch_close(struct watch *watch)
{
    for (unsigned i = 0; i < watch->count; i++) {
        descriptor_close(&watch->at[i].syscall);
        descriptor_close(&watch->at[i].schedstat);
    }
    if (watch->tasks)
        closedir(watch->tasks);
}

static int64_t clock_of(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time) ? -1 : (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Nanoseconds that all threads of the process, also those that have ended, have executed in user mode, as the kernel's
 * ticks found it. (The clock that clock_getcpuclockid names is the one of all that it has executed.) -1: not to be had.
 */
static int64_t user_time(pid_t pid)
{
    enum { CLOCK_OF_USER_MODE = 1 };
    return clock_of((clockid_t)(~(unsigned)pid << 3 | CLOCK_OF_USER_MODE));
}

static bool user_time_grows(pid_t pid, int64_t nap)
{
    int64_t before = user_time(pid), until = clock_of(CLOCK_MONOTONIC) + SHORT;
    if (before < 0)
        return false;
    if (nap) {
        nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
        return user_time(pid) > before;
    }
    while (user_time(pid) == before)
        if (clock_of(CLOCK_MONOTONIC) > until)
            return false;
    return true;
}

/* The list is read after the first look: a thread that is not in it, and executes something in the window, was begun by
 * one that did not sleep from its first look to its second: by the running thread, which was outside of the call then.
 */
static bool watch_window(struct watch *watch, int64_t nap)
{
    watch_look(watch);
    return watch_is_complete(watch) && user_time_grows(watch->pid, nap) && watch_look(watch) <= 1;
}

static bool watch_for_long(struct watch *watch)
{
    bool seen = false;
    for (int64_t until = clock_of(CLOCK_MONOTONIC) + LOOKS; !seen && clock_of(CLOCK_MONOTONIC) < until;)
        seen = watch_window(watch, 0);
    return seen || watch_window(watch, NAP);
}

bool peer_threads_runs(pid_t pid, long call)
{
    int before = uncancelled_begin();
    struct watch *watch = calloc(1, sizeof *watch);
    bool seen = false;
    if (watch) {
        watch->pid = pid;
        watch->call = call;
        seen = watch_open(watch) && watch_for_long(watch);
        watch_close(watch);
    }
    free(watch);
    uncancelled_end(before);
    return seen;
}
