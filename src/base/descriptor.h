/* Descriptors that the program never sees have high numbers, where RLIMIT_NOFILE permits. A program may close
 * descriptors that it did not open (closefrom(3), or a number twice) and then open files, which get the lowest numbers:
 * the library would read and write those files. High numbers also leave the program the numbers that select(2) can
 * handle. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uncancelled.h"

/* A number from here on counts as high under any limit: programs seldom have 256 files. */
enum { DESCRIPTOR_HIGH = 256 };

/* The least number that descriptors are moved to. */
static inline int descriptor_floor(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    return limit.rlim_cur >= 2 * FD_SETSIZE ? FD_SETSIZE : (int)limit.rlim_cur / 2;
}

/* Moves a descriptor and returns its new number, or the old one where there is no place; returns -1 for -1. All flags
 * stay, O_CLOEXEC is added, and errno stays. Call it before anything knows the number: closing the old one gives up the
 * locks of fcntl(2) that the process has on its file. */
static inline int descriptor_raise(int descriptor)
{
    int error = errno, before = uncancelled_begin();
    int high = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, descriptor_floor());
    if (high >= 0)
        close(descriptor);
    uncancelled_end(before);
    errno = error;
    return high < 0 ? descriptor : high;
}

/* Closes the descriptor unless it is -1, and makes it -1. */
static inline void descriptor_close(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* Returns true if the number may be an eventfd or a timerfd, whose status has no type, unlike a file's. A high number
 * is taken for one without a system call, as the program's files do not get such numbers. Safe in a signal handler. */
static inline bool descriptor_has_no_type(int descriptor)
{
    struct stat status;
    return descriptor >= DESCRIPTOR_HIGH || (!fstat(descriptor, &status) && !(status.st_mode & S_IFMT));
}
