#include "diag/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/likely.h"
#include "diag/named_file.h"

int output_open(struct output *output, const char *path, int flags)
{
    struct stat status;
    *output = (struct output){.descriptor = descriptor_raise(named_file_open(path, flags))};
    if (output->descriptor < 0)
        return errno;
    if (fstat(output->descriptor, &status)) {
        int error = errno;
        close(output->descriptor);
        return error;
    }
    output->known = true;
    output->device = status.st_dev;
    output->inode = status.st_ino;
    return 0;
}

/* A program that closes all descriptors opens other files under their numbers. Changes errno. */
static bool output_is_open(const struct output *output)
{
    struct stat status;
    if (!output->known)
        return true;
    if (fstat(output->descriptor, &status))
        return false;
    return status.st_dev == output->device && status.st_ino == output->inode;
}

void output_close(struct output *output)
{
    if (output_is_open(output))
        close(output->descriptor);
    output->descriptor = -1;
}

/* Writes few bytes, which a terminal mostly takes even if another writer has taken the room meanwhile. */
static ssize_t write_a_little(int descriptor, const void *data, size_t length)
{
    enum { LITTLE = 256 };
    struct pollfd room = {.fd = descriptor, .events = POLLOUT};
    if (poll(&room, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(descriptor, data, length < LITTLE ? length : LITTLE);
}

/* Opens a terminal anew: only a write to an open file description of our own, with O_NONBLOCK, does not wait. */
static ssize_t write_opened_anew(int descriptor, const void *data, size_t length)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0) /* another user's terminal */
        return write_a_little(descriptor, data, length);
    ssize_t written = write(own, data, length);
    int error = errno;
    close(own);
    errno = error;
    return written;
}

/* Writes as if O_NONBLOCK were set: the flag itself is shared with other writers of the same file. */
static ssize_t write_without_waiting(int descriptor, mode_t mode, const void *data, size_t length)
{
    struct iovec all = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
    if (S_ISSOCK(mode))
        return send(descriptor, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISREG(mode) || fcntl(descriptor, F_GETFL) & O_NONBLOCK)
        return write(descriptor, data, length);
    ssize_t written = syscall(SYS_pwritev2, descriptor, &all, 1L, -1L, -1L, (long)RWF_NOWAIT);
    bool unknown = written < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EPERM);
    return unknown ? write_opened_anew(descriptor, data, length) : written;
}

/* Makes a pipe that has no room for the whole text larger, as far as the system permits: half a text is of no use. */
static bool pipe_has_room(int descriptor, size_t length)
{
    int unread = 0, size = fcntl(descriptor, F_GETPIPE_SZ);
    if (length <= PIPE_BUF || size < 0 || ioctl(descriptor, FIONREAD, &unread))
        return true;                                    /* the write takes all or nothing, or says why */
    size_t needed = (size_t)unread + length + PIPE_BUF; /* other writers can't use the rest of the last page */
    return needed <= (size_t)size || needed > INT_MAX || fcntl(descriptor, F_SETPIPE_SZ, (int)needed) >= (int)needed;
}

static size_t write_all(int descriptor, const char *data, size_t length)
{
    struct stat status;
    size_t done = 0;
    if (fstat(descriptor, &status))
        return 0;
    if (S_ISFIFO(status.st_mode) && !pipe_has_room(descriptor, length)) {
        errno = EAGAIN;
        return 0;
    }
    while (done < length) {
        ssize_t some = write_without_waiting(descriptor, status.st_mode, data + done, length - done);
        if (some > 0)
            done += (size_t)some;
        else if (!some)
            errno = ENOSPC;
        if (!some || (some < 0 && errno != EINTR))
            break;
    }
    return done;
}

/* Takes back the signal that was raised for this thread, unless it was pending before: the program had blocked it. */
static void take_back(int number, const sigset_t *waited)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, number);
    if (!sigismember(waited, number))
        sigtimedwait(&ours, NULL, &(struct timespec){0});
}

cold size_t output_write(const struct output *output, const void *data, size_t length)
{
    sigset_t ours, before, waited;
    if (!output_is_open(output)) {
        errno = EBADF;
        return 0;
    }
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    sigpending(&waited);
    size_t done = write_all(output->descriptor, data, length);
    if (done < length) {
        int error = errno;
        if (error == EPIPE || error == EFBIG)
            take_back(error == EPIPE ? SIGPIPE : SIGXFSZ, &waited);
        errno = error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}
