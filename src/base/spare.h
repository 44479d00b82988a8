/* A descriptor that is kept, so that a function that needs one for a moment still gets it when the program has used up
 * all that it may have (RLIMIT_NOFILE). Its number is low, unlike others (base/descriptor.h), so that it is of use
 * although the program has lowered the limit since. -1: there is no spare descriptor. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Keeps a copy of this descriptor, if none is kept yet and one can be made. One thread at a time. */
static inline void spare_keep(atomic_int *spare, int descriptor)
{
    if (atomic_load(spare) < 0)
        atomic_store(spare, fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

/* Closes the spare descriptor. False: there was no spare descriptor. Thread-safe; errno stays. */
static inline bool spare_give_up(atomic_int *spare)
{
    int kept = errno, descriptor = atomic_exchange(spare, -1);
    if (descriptor >= 0)
        close(descriptor);
    errno = kept;
    return descriptor >= 0;
}
