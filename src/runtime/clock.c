#include "runtime/clock.h"

#include <stdatomic.h>
#include <time.h>

#include "base/likely.h"

nanos clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec;
}

nanos clock_busy(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (nanos)spent.tv_sec * NANOS_SECOND + (nanos)spent.tv_nsec;
}

nanos clock_about_now(void)
{
    static _Atomic nanos resolution;
    struct timespec now;
    nanos step = atomic_load_explicit(&resolution, memory_order_relaxed);
    if (unlikely(!step)) {
        clock_getres(CLOCK_MONOTONIC_COARSE, &now);
        step = (nanos)now.tv_nsec;
        atomic_store_explicit(&resolution, step, memory_order_relaxed);
    }
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec + step;
}
