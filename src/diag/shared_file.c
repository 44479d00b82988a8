#include "diag/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file_lock.h"

int shared_file_append(const char *path, bool made, const void *record, size_t length)
{
    struct output file;
    int error = output_open(&file, path, O_WRONLY | O_APPEND | O_NONBLOCK | (made ? O_CREAT : 0));
    if (error)
        return error;
    if (output_write(&file, record, length) < length)
        error = errno;
    output_close(&file);
    return error;
}

static int open_to_keep(struct output *file, const char *path)
{
    return output_open(file, path, O_RDWR | O_APPEND | O_CREAT);
}

/* Called under the lock of the file. */
static int begin_or_go_on(const struct output *file, const void *head, size_t length)
{
    uint8_t found[SHARED_FILE_LOOK * 8];
    ssize_t there = pread(file->descriptor, found, length < sizeof found ? length : sizeof found, 0);
    if (there < 0)
        return errno;
    if (there)
        return (size_t)there == length && !memcmp(found, head, length) ? 0 : EEXIST;
    size_t written = output_write(file, head, length);
    if (written == length)
        return 0;
    int error = errno;
    if (written && ftruncate(file->descriptor, 0))
        error = errno;
    return error;
}

/* Processes look one after the other whether the file has begun. */
static int begin_locked(const struct output *file, const void *head, size_t length)
{
    int error = file_lock_byte(file->descriptor, F_WRLCK, 0);
    if (error == EAGAIN || error == EACCES)
        return EBUSY;
    error = begin_or_go_on(file, head, length);
    file_lock_byte(file->descriptor, F_UNLCK, 0);
    return error;
}

int shared_file_open(struct output *file, const char *path, const void *head, size_t length)
{
    int error = open_to_keep(file, path);
    if (error)
        return error;
    flock(file->descriptor, LOCK_SH); /* shared_file_empty looks for it */
    error = begin_locked(file, head, length);
    if (error)
        output_close(file);
    return error;
}

int shared_file_empty(const char *path, bool (*is_ours)(const void *, size_t))
{
    struct output file;
    uint8_t found[SHARED_FILE_LOOK];
    int error = open_to_keep(&file, path);
    if (error)
        return error;
    ssize_t there = pread(file.descriptor, found, sizeof found, 0);
    if (there < 0)
        error = errno;
    else if (there && !is_ours(found, (size_t)there))
        error = EEXIST;
    else if (!flock(file.descriptor, LOCK_EX | LOCK_NB) && ftruncate(file.descriptor, 0))
        error = errno;
    output_close(&file);
    return error;
}
