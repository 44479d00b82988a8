#include "runtime/clock.h"

#include <stdatomic.h>
#include <time.h>

#include "base/likely.h"
#include "base/read_clock.h"

nanos clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

nanos clock_busy(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

nanos clock_about_now(void)
{
    static _Atomic nanos resolution;
    nanos step = atomic_load_explicit(&resolution, memory_order_relaxed);
    if (unlikely(!step)) {
        struct timespec each;
        clock_getres(CLOCK_MONOTONIC_COARSE, &each);
        step = (nanos)each.tv_nsec;
        atomic_store_explicit(&resolution, step, memory_order_relaxed);
    }
    return read_clock(CLOCK_MONOTONIC_COARSE) + step;
}
