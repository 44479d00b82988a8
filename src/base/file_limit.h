/* A write or truncate that grows a file over RLIMIT_FSIZE not only fails: it sends SIGXFSZ, which kills the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Returns true if this process may not make a file of `size` bytes. */
static inline bool file_limit_forbids(uint64_t size)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size;
}
