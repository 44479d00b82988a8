#include "timers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "answer.h"
#include "clock.h"
#include "file.h"
#include "raw.h"
#include "token.h"

enum { BY_SIGNAL = -1 };
#define SECOND 1000000000ull

/* Whether the descriptor still is one of a timer: a program may have given its number to another file. */
static bool is_timer(int descriptor)
{
    static const char kind[] = "anon_inode:[eventfd]";
    char path[32] = "/proc/self/fd/", link[sizeof kind];
    size_t end = strlen(path);
    for (int power = 1000000000; power; power /= 10)
        if (descriptor / power || power == 1)
            path[end++] = (char)('0' + descriptor / power % 10);
    path[end] = '\0';
    return descriptor >= 0 && RAW(readlink, path, link, sizeof link) == sizeof kind - 1 &&
           !memcmp(link, kind, sizeof kind - 1);
}

static void serve_timer(struct sim_timer *timer)
{
    uint64_t one = 1;
    if (timer->descriptor == BY_SIGNAL)
        RAW(kill, token_process, SIGALRM);
    else if (is_timer(timer->descriptor))
        RAW(write, timer->descriptor, &one, sizeof one);
    token_run->acts++;
    if (timer->every)
        timer->at += timer->every;
    else
        timer->pid = 0;
}

void timers_serve(void)
{
    for (unsigned i = 0; i < SIM_TIMERS; i++)
        if (token_run->timers[i].pid == token_process && token_run->timers[i].at <= token_run->now)
            serve_timer(&token_run->timers[i]);
}

static struct sim_timer *find_timer(pid_t pid, int descriptor)
{
    for (unsigned i = 0; i < SIM_TIMERS; i++)
        if (token_run->timers[i].pid == pid && (!pid || token_run->timers[i].descriptor == descriptor))
            return &token_run->timers[i];
    return NULL;
}

/* A span of 0 ends it. */
static long set_timer(int descriptor, uint64_t at, uint64_t every)
{
    struct sim_timer *timer = find_timer(token_process, descriptor);
    if (!timer && at != SIM_NEVER)
        timer = find_timer(0, 0);
    if (!timer)
        return at == SIM_NEVER ? 0 : -ENOMEM;
    *timer = (struct sim_timer){at == SIM_NEVER ? 0 : token_process, descriptor, at, every};
    return 0;
}

static uint64_t micros(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_usec * 1000ull;
}

/* What is left until it is due; 0: it is not set. */
static uint64_t left_of(const struct sim_timer *timer)
{
    return timer && timer->at > token_run->now ? timer->at - token_run->now : 0;
}

static struct itimerspec describe(int descriptor)
{
    const struct sim_timer *timer = find_timer(token_process, descriptor);
    uint64_t left = left_of(timer), every = timer ? timer->every : 0;
    return (struct itimerspec){{(time_t)(every / SECOND), (long)(every % SECOND)},
                               {(time_t)(left / SECOND), (long)(left % SECOND)}};
}

static struct itimerval in_micros(struct itimerspec from)
{
    return (struct itimerval){{from.it_interval.tv_sec, from.it_interval.tv_nsec / 1000},
                              {from.it_value.tv_sec, from.it_value.tv_nsec / 1000}};
}

void timers_forget(int descriptor)
{
    set_timer(descriptor, SIM_NEVER, 0);
}

/* --- calls */

/* An eventfd counts as a timer's descriptor does. */
long answer_timerfd_create(struct caught *call)
{
    int flags = call->argument[1] & TFD_CLOEXEC ? EFD_CLOEXEC : 0;
    return RAW(eventfd2, 0, flags | (call->argument[1] & TFD_NONBLOCK ? EFD_NONBLOCK : 0));
}

long answer_timerfd_settime(struct caught *call)
{
    const struct itimerspec *to = (void *)call->argument[2];
    struct itimerspec *old = (void *)call->argument[3], before = describe((int)call->argument[0]);
    uint64_t span = clock_nanos(&to->it_value), count;
    if (!is_timer((int)call->argument[0]))
        return RAW(timerfd_settime, call->argument[0], call->argument[1], to, old); /* it says why */
    if (file_is_ready((int)call->argument[0], POLLIN))
        RAW(read, call->argument[0], &count, sizeof count);
    uint64_t at =
        call->argument[1] & TFD_TIMER_ABSTIME ? clock_from_absolute(CLOCK_MONOTONIC, &to->it_value) : token_later(span);
    if (old)
        *old = before;
    return set_timer((int)call->argument[0], span ? at : SIM_NEVER, clock_nanos(&to->it_interval));
}

long answer_timerfd_gettime(struct caught *call)
{
    if (!is_timer((int)call->argument[0]))
        return RAW(timerfd_gettime, call->argument[0], call->argument[1]);
    *(struct itimerspec *)call->argument[1] = describe((int)call->argument[0]);
    return 0;
}

/* The seconds that were left. */
long answer_alarm(struct caught *call)
{
    uint64_t left = left_of(find_timer(token_process, BY_SIGNAL));
    set_timer(BY_SIGNAL, call->argument[0] ? token_later((uint64_t)call->argument[0] * SECOND) : SIM_NEVER, 0);
    return (long)((left + SECOND - 1) / SECOND);
}

long answer_setitimer(struct caught *call)
{
    const struct itimerval *to = (void *)call->argument[1];
    struct itimerval *old = (void *)call->argument[2];
    if (call->argument[0] != ITIMER_REAL)
        return RAW(setitimer, call->argument[0], call->argument[1], call->argument[2]);
    if (old)
        *old = in_micros(describe(BY_SIGNAL));
    uint64_t span = to ? micros(&to->it_value) : 0;
    return set_timer(BY_SIGNAL, span ? token_later(span) : SIM_NEVER, to ? micros(&to->it_interval) : 0);
}

long answer_getitimer(struct caught *call)
{
    if (call->argument[0] != ITIMER_REAL)
        return RAW(getitimer, call->argument[0], call->argument[1]);
    *(struct itimerval *)call->argument[1] = in_micros(describe(BY_SIGNAL));
    return 0;
}
