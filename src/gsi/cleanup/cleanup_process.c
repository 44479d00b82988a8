#include "gsi/cleanup/cleanup_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "gsi/cleanup/cleanup_goodbye.h"
#include "gsi/cleanup/cleanup_layout.h"

enum { LOOK_MILLISECONDS = 1000 }; /* the time between two looks whether there are sessions */

static void close_from_directory(int first)
{
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;
    while (list && (entry = readdir(list))) {
        int fd = atoi(entry->d_name);
        if (fd >= first && fd != dirfd(list))
            close(fd);
    }
    if (list)
        closedir(list);
}

/* Keeps no descriptor of the program's, as a process may wait until the last copy is closed. */
static void close_all_from(int first)
{
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, first, UINT_MAX, 0))
        return;
#endif
    close_from_directory(first);
}

/* All signals are blocked. A service manager that ends all processes of a service sends SIGTERM, which waits until the
 * program has ended; SIGKILL does no harm. */
static void become_a_daemon(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    close_all_from(CLEANUP_DESCRIPTORS);
    setsid();
    umask(077);
    (void)!chdir("/"); /* if it fails, a file system stays busy */
    prctl(PR_SET_NAME, "softverbs-clean");
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){.sched_priority = 0});
}

/* Maps the shared memory; NULL: it is of another release. */
static struct cleanup_shared *open_memory(void)
{
    struct stat status;
    if (fstat(CLEANUP_MEMORY_AT, &status) || status.st_size != sizeof(struct cleanup_shared))
        return NULL;
    void *memory = mmap(NULL, sizeof(struct cleanup_shared), PROT_READ | PROT_WRITE, MAP_SHARED, CLEANUP_MEMORY_AT, 0);
    struct cleanup_shared *shared = memory == MAP_FAILED ? NULL : memory;
    bool known =
        shared && shared->magic == CLEANUP_MAGIC && shared->layout == CLEANUP_LAYOUT && shared->size == sizeof *shared;
    return known ? shared : NULL;
}

static nanos now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* True: there was no session for CLEANUP_TIMEOUT, and the count now says that no process reads the records. */
static bool has_been_idle(struct cleanup_shared *shared, nanos *idle_since)
{
    uint32_t none = 0;
    nanos time = now();
    if (atomic_load(&shared->count) || !*idle_since) {
        *idle_since = time;
        return false;
    }
    return time - *idle_since >= CLEANUP_TIMEOUT * NANOS_SECOND &&
           atomic_compare_exchange_strong(&shared->count, &none, CLEANUP_OVER);
}

/* Waits for the end of the program: the other end of the pipe is closed (the program has ended or become another), or
 * the process has ended (its child may have inherited the pipe). False: there was no session for a while. */
static bool outlives(struct cleanup_shared *shared)
{
    struct pollfd ends[] = {{.fd = CLEANUP_END_AT}, {.fd = CLEANUP_PROGRAM_AT, .events = POLLIN}};
    nanos idle_since = 0;
    for (;;) {
        int count = poll(ends, 2, LOOK_MILLISECONDS);
        if (ends[1].revents & POLLNVAL) /* an old kernel has no pidfd */
            ends[1].fd = -1;
        else if (count > 0 && (ends[0].revents || ends[1].revents))
            return true;
        if (has_been_idle(shared, &idle_since))
            return false;
    }
}

static void live(void)
{
    become_a_daemon();
    struct cleanup_shared *shared = open_memory();
    if (shared)
        atomic_store(&shared->lives, 1);
    if (shared && outlives(shared))
        cleanup_say_goodbye(shared, now);
    _exit(0);
}

#if defined(__x86_64__) || defined(__i386__)
__attribute__((force_align_arg_pointer)) /* the loader jumps here and does not call */
#endif
void cleanup_entry(void)
{
    live();
    __builtin_unreachable();
}
