#include "diag/output.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "diag/named_file.h"

int output_open(struct output *output, const char *path, int flags)
{
    struct stat status;
    *output = (struct output){.descriptor = named_file_open(path, flags)};
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

static size_t write_all(int descriptor, const char *data, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t some = write(descriptor, data + done, length - done);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            break;
        done += (size_t)some;
    }
    return done;
}

/* Both are raised for the thread that writes. One that had waited before, blocked by the program, is not ours to take;
 * a second of its kind is not kept beside it. */
static void take_back(const sigset_t *ours, const sigset_t *waited)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    sigset_t fresh = *ours;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigismember(waited, numbers[i]))
            sigdelset(&fresh, numbers[i]);
    while (sigtimedwait(&fresh, NULL, &(struct timespec){0}) > 0)
        ;
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
            take_back(&ours, &waited);
        errno = error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}
