/* Time in all layers: nanoseconds of CLOCK_MONOTONIC, or of a test's virtual clock. */
#pragma once

#include <stdint.h>

typedef uint64_t nanos;

#define NANOS_NEVER UINT64_MAX
#define NANOS_MICROSECOND 1000ull
#define NANOS_MILLISECOND 1000000ull
#define NANOS_SECOND 1000000000ull

/* The time from `then` to `now`; 0 where `then` is later, as where an exact time meets one of clock_about_now(), which
 * may be some milliseconds ahead. */
static inline nanos nanos_since(nanos then, nanos now)
{
    return now > then ? now - then : 0;
}

/* How long to wait before a question is repeated that was repeated `asked` times: 1 ms at first, then twice as long
 * each time, up to 64 ms. */
static inline nanos nanos_backoff(unsigned asked)
{
    enum { DOUBLINGS = 6 };
    return NANOS_MILLISECOND << (asked < DOUBLINGS ? asked : DOUBLINGS);
}
