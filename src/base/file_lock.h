/* A lock of a file that each process holds for a moment only. As its holder may be stopped meanwhile, no caller waits
 * for it without end. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/uncancelled.h"

/* Sets or clears the lock of one byte (F_OFD_SETLK), and tries again for five seconds. 0 or errno: EAGAIN or EACCES
 * when another process keeps it. */
static inline int file_lock_byte(int fd, short type, off_t start)
{
    enum { MOST_TRIES = 5000 };
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};
    int error = EAGAIN, before = uncancelled_begin();
    for (int i = 0; i < MOST_TRIES && (error == EAGAIN || error == EACCES || error == EINTR); i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        error = fcntl(fd, F_OFD_SETLK, &lock) ? errno : 0;
    }
    uncancelled_end(before);
    return error;
}
