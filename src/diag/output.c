#include "diag/output.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
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

bool output_is_open(const struct output *output)
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

/* A pipe or a terminal that is full, opened so that it blocks no writer: its reader gets some time. */
static bool waits_for_room(int descriptor, int *patience)
{
    enum { STEP = 10 };
    struct pollfd full = {.fd = descriptor, .events = POLLOUT};
    *patience -= STEP;
    return *patience >= 0 && poll(&full, 1, STEP) >= 0;
}

static size_t write_all(int descriptor, const char *data, size_t length)
{
    int patience = 200; /* milliseconds */
    size_t done = 0;
    while (done < length) {
        ssize_t some = write(descriptor, data + done, length - done);
        if (some > 0)
            done += (size_t)some;
        else if (!some)
            errno = ENOSPC;
        if (!some || (some < 0 && errno != EINTR && !(errno == EAGAIN && waits_for_room(descriptor, &patience))))
            break;
    }
    return done;
}

/* It is raised for the thread that writes. One that had waited before, blocked by the program, is not ours to take. */
static void take_back(int number, const sigset_t *waited)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, number);
    if (!sigismember(waited, number))
        sigtimedwait(&ours, NULL, &(struct timespec){0});
}

size_t output_write(const struct output *output, const void *data, size_t length)
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
