#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "raw.h"
#include "signals.h"
#include "token.h"

enum { KEPT_FROM = 600 }; /* above the descriptors that programs count on */

bool file_is_ready(int descriptor, short events)
{
    struct pollfd one = {descriptor, events, 0};
    return RAW(poll, &one, 1, 0) != 0;
}

bool file_waits(int descriptor)
{
    long flags = RAW(fcntl, descriptor, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK);
}

bool file_is(int descriptor, mode_t type)
{
    struct stat status;
    return !RAW(fstat, descriptor, &status) && (status.st_mode & S_IFMT) == type;
}

uint64_t file_deadline(int descriptor, int option)
{
    struct timeval span = {0};
    int length = sizeof span;
    if (RAW(getsockopt, descriptor, SOL_SOCKET, option, &span, &length) || (!span.tv_sec && !span.tv_usec))
        return SIM_NEVER;
    return token_later((uint64_t)span.tv_sec * 1000000000ull + (uint64_t)span.tv_usec * 1000);
}

int file_keep(int descriptor)
{
    int *kept = token_thread()->kept;
    for (unsigned i = 0; i < SIM_KEPT; i++) {
        if (kept[i])
            continue;
        long second = RAW(fcntl, descriptor, F_DUPFD_CLOEXEC, KEPT_FROM);
        if (second < 0)
            return descriptor;
        return kept[i] = (int)second;
    }
    return descriptor;
}

static void drop(const int *kept)
{
    for (unsigned i = 0; i < SIM_KEPT; i++)
        if (kept[i])
            RAW(close, kept[i]);
}

void file_drop_kept(void)
{
    int *kept = token_thread()->kept;
    drop(kept);
    for (unsigned i = 0; i < SIM_KEPT; i++)
        kept[i] = 0;
}

void file_drop_parents(pid_t parent)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (token_run->threads[i].state != SIM_FREE && token_run->threads[i].pid == parent)
            drop(token_run->threads[i].kept);
}

long file_wait(int descriptor, short events, uint64_t deadline)
{
    while (!file_is_ready(descriptor, events)) {
        enum token_outcome outcome = token_wait(SIM_TRIES, deadline, 0);
        if (outcome == TOKEN_SIGNAL)
            return signals_ended();
        if (outcome == TOKEN_TIME && !file_is_ready(descriptor, events))
            return -EAGAIN;
    }
    return 0;
}

long file_set_waiting(int descriptor, bool waits)
{
    long before = RAW(fcntl, descriptor, F_GETFL);
    RAW(fcntl, descriptor, F_SETFL, waits ? before & ~O_NONBLOCK : before | O_NONBLOCK);
    return before;
}

void file_set_flags(int descriptor, long flags)
{
    RAW(fcntl, descriptor, F_SETFL, flags);
}
