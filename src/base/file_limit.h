/* Growing a file over RLIMIT_FSIZE does not only fail, but sends SIGXFSZ, which kills. */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Returns true if this process may not make a file of so many bytes. */
static inline bool file_limit_forbids(uint64_t size)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size;
}

#endif
