/* A descriptor that is kept so that something, which needs one for a moment, finds a place when the program has used up
 * all it may have (RLIMIT_NOFILE). It lies low, unlike others (base/descriptor.h), so that its place is of use although
 * the program has lowered the limit since. -1: there is none. */
#ifndef BASE_SPARE_H
#define BASE_SPARE_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Ensures that there is one, a copy of this descriptor, if that is possible. For one thread at a time. */
static inline void spare_keep(atomic_int *spare, int descriptor)
{
    if (atomic_load(spare) < 0)
        atomic_store(spare, fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

/* Closes it; false: there was none. Thread-safe; errno stays. */
static inline bool spare_give_up(atomic_int *spare)
{
    int kept = errno, descriptor = atomic_exchange(spare, -1);
    if (descriptor >= 0)
        close(descriptor);
    errno = kept;
    return descriptor >= 0;
}

#endif
