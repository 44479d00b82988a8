/* Descriptors that the program never sees have high numbers, where RLIMIT_NOFILE permits. A program may close
 * descriptors that it did not open (closefrom(3), or a number twice) and then opens files, which get the lowest
 * numbers: the library would go on with those. Nor do they take numbers that select(2) can handle from the program. */
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uncancelled.h"

/* From here on a number is high, for any limit: a program seldom has so many files. */
enum { DESCRIPTOR_HIGH = 256 };

/* The least number that descriptors are moved to. */
static inline int descriptor_floor(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    return limit.rlim_cur >= 2 * FD_SETSIZE ? FD_SETSIZE : (int)limit.rlim_cur / 2;
}

/* Moves a descriptor, all of whose flags but O_CLOEXEC stay, and answers its new number, or the old one where there is
 * no place. -1 stays -1; so does errno. To be called at once, before anything knows the number: closing it would give
 * up the locks of fcntl(2) that the process has on its file. */
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

/* Returns true if an eventfd or a timerfd may be read and written under this number. Files have a type, these have
 * none. The number of a high descriptor is one that a file of the program does not get, so the system call is left out
 * there. Safe in the handler of a signal. */
static inline bool descriptor_has_no_type(int descriptor)
{
    struct stat status;
    return descriptor >= DESCRIPTOR_HIGH || (!fstat(descriptor, &status) && !(status.st_mode & S_IFMT));
}

#endif
