#include "process/event_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/uncancelled.h"

/* --- opening and closing */

static int open_for_both(int end)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", end);
    return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/* Opens the library's descriptor; without /proc it is the write end. */
static void open_own(struct event_pipe *pipe, int write_end)
{
    int both = open_for_both(write_end);
    pipe->reader = both < 0 ? descriptor_raise(fcntl(pipe->fd, F_DUPFD_CLOEXEC, 0)) : -1;
    if (both < 0)
        fcntl(write_end, F_SETFL, O_NONBLOCK);
    else
        close(write_end);
    pipe->own = descriptor_raise(both < 0 ? write_end : both);
    pipe->high = pipe->own >= DESCRIPTOR_HIGH;
}

int event_pipe_open(struct event_pipe *pipe, int flags)
{
    struct stat status;
    int ends[2], error = errno, before = uncancelled_begin();
    if (pipe2(ends, O_CLOEXEC)) {
        uncancelled_end(before);
        return errno;
    }
    if (flags & O_NONBLOCK)
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (!(flags & O_CLOEXEC))
        fcntl(ends[0], F_SETFD, 0);
    fstat(ends[0], &status);
    *pipe = (struct event_pipe){.fd = ends[0], .device = status.st_dev, .inode = status.st_ino};
    open_own(pipe, ends[1]);
    uncancelled_end(before);
    errno = error;
    return 0;
}

void event_pipe_close(struct event_pipe *pipe)
{
    int before = uncancelled_begin();
    descriptor_close(&pipe->own);
    descriptor_close(&pipe->reader);
    uncancelled_end(before);
}

/* --- bytes */

/* A program that closes all descriptors opens files under the lowest numbers. The system call would cost a wake-up a
 * tenth of its time, so descriptors with high numbers, which such files don't get, are not checked. */
static bool is_still_ours(const struct event_pipe *pipe)
{
    struct stat status;
    return pipe->high || (!fstat(pipe->own, &status) && status.st_ino == pipe->inode && status.st_dev == pipe->device);
}

/* Returns how many bytes found no place; 0 for a pipe that is gone. */
static uint32_t event_pipe_write(const struct event_pipe *pipe, uint32_t count)
{
    static const char bytes[256];
    if (!is_still_ours(pipe))
        return 0;
    while (count) {
        ssize_t done = write(pipe->own, bytes, count < sizeof bytes ? count : sizeof bytes);
        if (done < 0 && errno != EINTR)
            return errno == EAGAIN ? count : 0;
        count -= done > 0 ? (uint32_t)done : 0;
    }
    return 0;
}

static bool has_room(const struct event_pipe *pipe)
{
    struct pollfd own = {.fd = pipe->own, .events = POLLOUT};
    return poll(&own, 1, 0) == 1 && own.revents & POLLOUT;
}

/* Writes bytes, or notes a debt. If the pipe stays full after that, the reader of its next byte pays the debt. */
static void write_or_owe(struct event_pipe *pipe, uint32_t count)
{
    uint32_t rest;
    while (count && (rest = event_pipe_write(pipe, count))) {
        atomic_fetch_add(&pipe->owed, rest);
        count = has_room(pipe) ? atomic_exchange(&pipe->owed, 0) : 0;
    }
}

void event_pipe_add(struct event_pipe *pipe, uint32_t count)
{
    int error = errno, before = uncancelled_begin();
    write_or_owe(pipe, count);
    uncancelled_end(before);
    errno = error;
}

static void repay(struct event_pipe *pipe)
{
    uint32_t owed = atomic_load(&pipe->owed) ? atomic_exchange(&pipe->owed, 0) : 0;
    if (owed)
        event_pipe_add(pipe, owed);
}

int event_pipe_take(struct event_pipe *pipe, int fd)
{
    char byte;
    ssize_t done = read(fd, &byte, 1);
    if (!done)
        errno = EINVAL;
    if (done <= 0)
        return -1;
    repay(pipe);
    return 0;
}

/* RWF_NOWAIT holds for this call only; kernels before 6.5 do not have it for pipes, and then a needless byte stays. */
static ssize_t read_reader(const struct event_pipe *pipe, char *byte)
{
    struct iovec to = {byte, 1};
    return syscall(SYS_preadv2, pipe->reader, &to, 1L, -1L, -1L, (long)RWF_NOWAIT);
}

void event_pipe_take_back(struct event_pipe *pipe)
{
    char byte;
    int error = errno, before = uncancelled_begin();
    ssize_t done = 0;
    if (is_still_ours(pipe))
        done = pipe->reader >= 0 ? read_reader(pipe, &byte) : read(pipe->own, &byte, 1);
    if (done > 0)
        repay(pipe);
    uncancelled_end(before);
    errno = error;
}
