/* The virtual clock of a run, as programs read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

/* In place of the functions of the vDSO, for the program's own code. The first returns 0 or minus an errno. */
int clock_read(clockid_t, struct timespec *);
int clock_read_time_of_day(struct timeval *, void *zone);
time_t clock_read_seconds(time_t *);

/* Replaces the functions of the vDSO, which make no system call, in this process. A kernel that seals its pages (Linux
 * 6.16) forbids it; then the functions by their names (names.c) are all that is caught. */
void clock_replace_vdso(void);

/* Answers a fault that is a read of the time stamp counter. False: it is another fault. */
bool clock_answer_counter(void *context);

/* Virtual time from an absolute time of this clock. */
uint64_t clock_from_absolute(clockid_t, const struct timespec *);

static inline uint64_t clock_nanos(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec;
}
