/* The virtual clock of a run, as programs read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Replaces the functions of the vDSO, which make no system call, in this process. False: the kernel forbids it. */
bool clock_replace_vdso(void);

/* Answers a fault that is a read of the time stamp counter. False: it is another fault. */
bool clock_answer_counter(void *context);

/* Virtual time from an absolute time of this clock. */
uint64_t clock_from_absolute(clockid_t, const struct timespec *);

static inline uint64_t clock_nanos(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec;
}
