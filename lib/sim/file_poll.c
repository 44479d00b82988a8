/* Calls that wait for several files: poll, select, epoll. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>

#include "answer.h"
#include "clock.h"
#include "file.h"
#include "raw.h"
#include "signals.h"
#include "token.h"

enum { POLLED = 64, SIGNALS_BYTES = 8 };
#define SECOND 1000000000ull

/* --- deadlines; the present: the call does not wait */

static uint64_t after_milliseconds(int span)
{
    return span < 0 ? SIM_NEVER : token_later((uint64_t)span * 1000000);
}

static uint64_t after_time(const struct timespec *span)
{
    return span ? token_later(clock_nanos(span)) : SIM_NEVER;
}

/* The kernel tells select's callers. */
static uint64_t rest_of(uint64_t deadline)
{
    return deadline > token_run->now ? deadline - token_run->now : 0;
}

/* --- poll: files that were waited for when the call began wake it, and then it looks at the descriptors */

static long look_again(struct pollfd *files, struct pollfd *kept, unsigned long count, uint64_t deadline)
{
    for (;;) {
        enum token_outcome outcome = token_wait(SIM_TRIES, deadline, 0);
        if (outcome == TOKEN_SIGNAL)
            return -EINTR;
        bool last = outcome == TOKEN_TIME;
        long ready = last || RAW(poll, kept, count, 0) ? RAW(poll, files, count, 0) : 0;
        if (ready || last)
            return ready;
    }
}

static long poll_kept(struct pollfd *files, unsigned long count, uint64_t deadline)
{
    struct pollfd kept[POLLED];
    if (count > POLLED)
        return look_again(files, files, count, deadline);
    for (unsigned long i = 0; i < count; i++) {
        kept[i] = files[i];
        kept[i].fd = files[i].fd < 0 ? files[i].fd : file_keep(files[i].fd);
    }
    long ready = look_again(files, kept, count, deadline);
    file_drop_kept();
    return ready;
}

static long wait_polling(struct pollfd *files, unsigned long count, uint64_t deadline)
{
    long ready = RAW(poll, files, count, 0);
    if (ready || deadline <= token_run->now)
        return ready;
    return poll_kept(files, count, deadline);
}

long answer_poll(struct caught *call)
{
    return wait_polling((void *)call->argument[0], (unsigned long)call->argument[1],
                        after_milliseconds((int)call->argument[2]));
}

long answer_ppoll(struct caught *call)
{
    const uint64_t *mask = (void *)call->argument[3];
    uint64_t before = signals_begin_mask(call, mask);
    long result = wait_polling((void *)call->argument[0], (unsigned long)call->argument[1],
                               after_time((void *)call->argument[2]));
    return signals_end_mask(call, mask, before, result);
}

/* --- select: sets of descriptors for reading, writing and exceptions */

enum { SETS = 3 };

static const short set_events[SETS] = {POLLIN, POLLOUT, POLLPRI};
/* A descriptor that was closed meanwhile counts, too. */
static const short set_answers[SETS] = {POLLIN | POLLHUP | POLLERR | POLLNVAL, POLLOUT | POLLERR | POLLNVAL,
                                        POLLPRI | POLLNVAL};

static bool has(const fd_set *set, int descriptor)
{
    return set && (((const uint64_t *)set)[descriptor / 64] >> descriptor % 64 & 1);
}

static void put(fd_set *set, int descriptor)
{
    ((uint64_t *)set)[descriptor / 64] |= 1ull << descriptor % 64;
}

static size_t bytes_of(int descriptors)
{
    return (size_t)(descriptors + 63) / 64 * 8;
}

/* The number of files, or more than POLLED where they do not fit. */
static unsigned files_of(int descriptors, fd_set *const sets[SETS], struct pollfd files[POLLED])
{
    unsigned count = 0;
    for (int descriptor = 0; descriptor < descriptors; descriptor++) {
        short events = 0;
        for (int i = 0; i < SETS; i++)
            events = (short)(events | (has(sets[i], descriptor) ? set_events[i] : 0));
        if (events && count == POLLED)
            return POLLED + 1;
        if (events)
            files[count++] = (struct pollfd){descriptor, events, 0};
    }
    return count;
}

static long answer_sets(int descriptors, fd_set *const sets[SETS], const struct pollfd *files, unsigned count)
{
    long ready = 0;
    for (int i = 0; i < SETS; i++)
        if (sets[i])
            memset(sets[i], 0, bytes_of(descriptors));
    for (unsigned k = 0; k < count; k++)
        for (int i = 0; i < SETS; i++)
            if (files[k].events & set_events[i] && files[k].revents & set_answers[i]) {
                put(sets[i], files[k].fd);
                ready++;
            }
    return ready;
}

/* More files than fit: tried by the kernel's own select. */
static long select_many(int descriptors, fd_set *const sets[SETS], uint64_t deadline)
{
    fd_set copies[SETS];
    struct timespec nothing = {0, 0};
    for (int i = 0; i < SETS; i++)
        if (sets[i])
            memcpy(&copies[i], sets[i], bytes_of(descriptors));
    for (bool last = deadline <= token_run->now;;) {
        long ready = RAW(pselect6, descriptors, sets[0], sets[1], sets[2], &nothing, 0);
        if (ready || last)
            return ready;
        for (int i = 0; i < SETS; i++)
            if (sets[i])
                memcpy(sets[i], &copies[i], bytes_of(descriptors));
        enum token_outcome outcome = token_wait(SIM_TRIES, deadline, 0);
        if (outcome == TOKEN_SIGNAL)
            return -EINTR;
        last = outcome == TOKEN_TIME;
    }
}

static long wait_selecting(struct caught *call, uint64_t deadline)
{
    fd_set *const sets[SETS] = {(void *)call->argument[1], (void *)call->argument[2], (void *)call->argument[3]};
    int descriptors = (int)call->argument[0];
    struct pollfd files[POLLED];
    if (descriptors < 0)
        return -EINVAL;
    descriptors = descriptors < FD_SETSIZE ? descriptors : FD_SETSIZE;
    unsigned count = files_of(descriptors, sets, files);
    if (count > POLLED)
        return select_many(descriptors, sets, deadline);
    long ready = RAW(poll, files, count, 0);
    for (unsigned i = 0; i < count; i++)
        if (files[i].revents & POLLNVAL)
            return -EBADF;
    if (!ready && deadline > token_run->now)
        ready = poll_kept(files, count, deadline);
    return ready < 0 ? ready : answer_sets(descriptors, sets, files, count);
}

long answer_select(struct caught *call)
{
    struct timeval *span = (void *)call->argument[4];
    uint64_t nanos = span ? (uint64_t)span->tv_sec * SECOND + (uint64_t)span->tv_usec * 1000 : 0;
    uint64_t deadline = span ? token_later(nanos) : SIM_NEVER;
    long result = wait_selecting(call, deadline);
    if (span)
        *span = (struct timeval){(time_t)(rest_of(deadline) / SECOND), (long)(rest_of(deadline) % SECOND) / 1000};
    return result;
}

long answer_pselect6(struct caught *call)
{
    const struct {
        const uint64_t *mask;
        size_t bytes;
    } *signals = (void *)call->argument[5];
    struct timespec *span = (void *)call->argument[4];
    const uint64_t *mask = signals ? signals->mask : NULL;
    uint64_t deadline = after_time(span), before = signals_begin_mask(call, mask);
    long result = signals_end_mask(call, mask, before, wait_selecting(call, deadline));
    if (span)
        *span = (struct timespec){(time_t)(rest_of(deadline) / SECOND), (long)(rest_of(deadline) % SECOND)};
    return result;
}

/* --- epoll */

static long poll_set(struct caught *call, int set)
{
    return RAW(epoll_pwait, set, call->argument[1], call->argument[2], 0, 0, SIGNALS_BYTES);
}

static long wait_epolling(struct caught *call, uint64_t deadline)
{
    int set = (int)call->argument[0];
    long ready = poll_set(call, set);
    if (ready || deadline <= token_run->now)
        return ready;
    set = file_keep(set);
    for (bool last = false; !ready && !last;) {
        enum token_outcome outcome = token_wait(SIM_TRIES, deadline, 0);
        ready = outcome == TOKEN_SIGNAL ? -EINTR : poll_set(call, set);
        last = outcome == TOKEN_TIME;
    }
    file_drop_kept();
    return ready;
}

long answer_epoll_wait(struct caught *call)
{
    return wait_epolling(call, after_milliseconds((int)call->argument[3]));
}

static long wait_epolling_masked(struct caught *call, uint64_t deadline)
{
    const uint64_t *mask = (void *)call->argument[4];
    uint64_t before = signals_begin_mask(call, mask);
    return signals_end_mask(call, mask, before, wait_epolling(call, deadline));
}

long answer_epoll_pwait(struct caught *call)
{
    return wait_epolling_masked(call, after_milliseconds((int)call->argument[3]));
}

long answer_epoll_pwait2(struct caught *call)
{
    return wait_epolling_masked(call, after_time((void *)call->argument[3]));
}
