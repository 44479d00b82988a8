#include "top/collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/text/text.h"
#include "report/reports.h"

struct collector {
    pthread_mutex_t lock;
    struct top_look latest; /* under lock */
    char why[COLLECTOR_WHY];
    const char *directory;
    double interval;
    int event;
};

/* --- the library's own thread, whose name is "softverbs" (process/helper.c) */

/* Seconds of processor time of a thread, from "PID (NAME) STATE ...", whose fields 14 and 15 are user and system time;
 * 0 of another thread than the library's. */
static double seconds_of_thread(long pid, const char *thread)
{
    char path[64], text[1024];
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/%ld/task/%.16s/stat", pid, thread);
    if (!text_read_at(AT_FDCWD, path, text, sizeof text) || !strstr(text, "(softverbs) "))
        return 0;
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Seconds of the library's thread of this process; NAN: the process has ended. */
static double seconds_of_helper(long pid)
{
    char path[64];
    double seconds = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *threads = opendir(path);
    for (struct dirent *thread; threads && (thread = readdir(threads));)
        seconds += *thread->d_name == '.' ? 0 : seconds_of_thread(pid, thread->d_name);
    if (!threads)
        return NAN;
    closedir(threads);
    return seconds;
}

bool collector_look(const char *directory, struct top_look *look, char why[COLLECTOR_WHY])
{
    *why = 0;
    look->reports = reports_collect(directory, why, COLLECTOR_WHY);
    look->seconds = read_clock_seconds();
    look->seen = seen_begin(look->reports);
    look->helpers = calloc(look->seen.count + 1, sizeof *look->helpers);
    if (!look->helpers)
        seen_end(&look->seen);
    for (size_t i = 0; i < look->seen.count; i++)
        look->helpers[i] = seconds_of_helper((long)look->seen.processes[i].own.pid.value);
    return look->reports;
}

/* --- the thread */

void collector_rest(double seconds)
{
    struct timespec rest = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&rest, &rest) && errno == EINTR)
        ;
}

static void keep(struct collector *collector, struct top_look *look, const char *why)
{
    pthread_mutex_lock(&collector->lock);
    struct top_look old = collector->latest;
    collector->latest = *look;
    memcpy(collector->why, why, COLLECTOR_WHY);
    pthread_mutex_unlock(&collector->lock);
    top_look_end(&old);
    eventfd_write(collector->event, 1);
}

static void *collect(void *argument)
{
    struct collector *collector = argument;
    for (;;) {
        char why[COLLECTOR_WHY] = "";
        struct top_look look = {0};
        double next = read_clock_seconds() + collector->interval;
        collector_look(collector->directory, &look, why);
        keep(collector, &look, why);
        collector_rest(next - read_clock_seconds());
    }
    return NULL;
}

/* Creates the thread without signals, which the thread that waits for keys gets. */
static int create(pthread_t *thread, struct collector *collector)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, collect, collector);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

struct collector *collector_begin(const char *directory, double interval)
{
    pthread_t thread;
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return NULL;
    pthread_mutex_init(&collector->lock, NULL);
    collector->directory = directory;
    collector->interval = interval;
    collector->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (collector->event >= 0 && !create(&thread, collector)) {
        pthread_detach(thread);
        return collector;
    }
    if (collector->event >= 0)
        close(collector->event);
    pthread_mutex_destroy(&collector->lock);
    free(collector);
    return NULL;
}

int collector_descriptor(const struct collector *collector)
{
    return collector->event;
}

bool collector_take(struct collector *collector, struct top_look *look, char why[COLLECTOR_WHY])
{
    eventfd_t times;
    eventfd_read(collector->event, &times);
    pthread_mutex_lock(&collector->lock);
    *look = collector->latest;
    collector->latest = (struct top_look){0};
    memcpy(why, collector->why, COLLECTOR_WHY);
    pthread_mutex_unlock(&collector->lock);
    return look->reports;
}
