/* How long the waits of the protocols are: a time-out that a program, a standard or Linux's CM sets (of ACKs, RNR NAKs,
 * messages of the connection manager, the resolution of addresses, timewait) is scaled here, and nothing else is.
 * SOFTVERBS_TIME_SCALE shortens them for tests. A longer wait stays the longer one, so that events keep their order;
 * the time that schedulers and networks need at least is not shortened. */
#pragma once

#include <stdatomic.h>

#include "base/likely.h"
#include "base/nanos.h"

#define TIME_SCALE_WHOLE 1000000u                    /* nothing is shortened */
#define TIME_SCALE_FROM (4 * NANOS_MILLISECOND)      /* the first part of a wait, which is not scaled */
#define TIME_SCALE_LONGEST (10000000 * NANOS_SECOND) /* the longest wait that can be scaled; no wait is longer */

extern _Atomic uint32_t time_scale; /* in millionths; private */

/* Call it before the first wait: a wait under way is not scaled again. Thread-safe. */
void time_scale_set(uint32_t millionths);

nanos time_scaled_slow(nanos wait, uint32_t scale); /* the slow half of time_scaled */

/* The scaled length of a wait; 0 stays 0. Not for NANOS_NEVER, nor for a point in time. */
static inline nanos time_scaled(nanos wait)
{
    uint32_t scale = atomic_load_explicit(&time_scale, memory_order_relaxed);
    return likely(scale == TIME_SCALE_WHOLE) ? wait : time_scaled_slow(wait, scale);
}
