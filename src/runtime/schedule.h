/* All deadlines of a process: one heap of timers with callbacks.
 *
 * A timer expires once. The owner of a deadline sets it (schedule_by); the callback handles the work that is due by
 * then, under its owner's lock, and sets the next one. A deadline that was moved in the meantime costs one callback
 * that finds nothing to do, so deadlines are never taken back. A timer that is set under its owner's lock, which the
 * callback takes too, is never lost: either it is still set, or its callback runs later. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "base/nanos.h"
#include "base/timers.h"

struct schedule_timer {
    struct timer timer;
    _Atomic nanos at; /* NANOS_NEVER: not set; written under schedule->lock */
};

struct schedule {
    struct lock lock; /* innermost */
    struct timers timers;
    nanos looking;                      /* the time of the schedule_expire that is under way; or 0 */
    _Atomic nanos look_at;              /* when the helper looks at the timers next; NANOS_NEVER: when it is woken */
    void (*wake_up)(struct schedule *); /* the helper */
};

void schedule_initialize(struct schedule *, void (*wake_up)(struct schedule *));

void schedule_initialize_timer(struct schedule_timer *, void (*expired)(struct timer *, nanos now));

/* Makes the timer expire at this time at the latest. Thread-safe. */
void schedule_by(struct schedule *, struct schedule_timer *, nanos at);

/* Cancels the timer. Only one thread at a time cancels or expires timers: under process->progress, which also keeps
 * the callback from running. */
void schedule_cancel(struct schedule *, struct schedule_timer *);

/* Calls back the timers that are due, in the order of time; a timer that a callback sets to a time in the past waits
 * for the next call. Returns when to call again. Under process->progress, without any lock that a callback takes. */
nanos schedule_expire(struct schedule *, nanos now);

/* Notes when the helper will look at the timers. A schedule_expire after this call sees the deadlines that were set
 * before it; a sooner deadline that is set after it wakes the helper. */
static inline void schedule_look_at(struct schedule *schedule, nanos when)
{
    atomic_store(&schedule->look_at, when);
}

static inline bool schedule_is_due(const struct schedule *schedule, nanos now)
{
    return now >= atomic_load(&schedule->look_at);
}
