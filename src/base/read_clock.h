/* The clocks of the system, each as one number. */
#pragma once

#include <time.h>

#include "base/nanos.h"

/* Nanoseconds of CLOCK_MONOTONIC, CLOCK_REALTIME and so on (clock_gettime(2)). */
static inline nanos read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec;
}

/* Seconds of CLOCK_MONOTONIC. */
static inline double read_clock_seconds(void)
{
    return (double)read_clock(CLOCK_MONOTONIC) / 1e9;
}

/* The number to add to a time of CLOCK_MONOTONIC for nanoseconds since 1970. */
static inline int64_t read_clock_epoch(void)
{
    return (int64_t)(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC));
}
