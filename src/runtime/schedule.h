/* All deadlines of a process: one heap of timers with callbacks.
 *
 * A timer expires once. The owner of a deadline names it (schedule_by); the callback handles the work that is due by
 * then, under its owner's lock, and names the next one. A deadline that has moved away in the meantime costs one
 * callback that finds nothing to do, so deadlines are never taken back. A timer that is named under its owner's lock,
 * which the callback takes too, is never lost: either it is still set, or its callback comes after. */
#ifndef RUNTIME_SCHEDULE_H
#define RUNTIME_SCHEDULE_H

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
    nanos looking;                      /* the time of the look that is under way; 0: none is */
    _Atomic nanos look_at;              /* when the helper looks at the timers next; NANOS_NEVER: when it is woken */
    void (*wake_up)(struct schedule *); /* the helper */
};

void schedule_initialize(struct schedule *, void (*wake_up)(struct schedule *));

void schedule_initialize_timer(struct schedule_timer *, void (*expired)(struct timer *, nanos now));

/* The timer expires at this time at the latest. Thread-safe. */
void schedule_by(struct schedule *, struct schedule_timer *, nanos at);

/* The timer is not set any more. Only one thread at a time cancels or expires: under process->progress, which also
 * says that the callback does not run. */
void schedule_cancel(struct schedule *, struct schedule_timer *);

/* Calls back the timers that are due, in the order of time; one that a callback names for a time that has passed waits
 * for the next look. Returns when to look again. Under process->progress, without any lock that a callback takes. */
nanos schedule_expire(struct schedule *, nanos now);

/* The helper will look at this time. A schedule_expire after this call sees the deadlines that were named before it; a
 * sooner one that is named after it wakes the helper. */
static inline void schedule_look_at(struct schedule *schedule, nanos when)
{
    atomic_store(&schedule->look_at, when);
}

static inline bool schedule_is_due(const struct schedule *schedule, nanos now)
{
    return now >= atomic_load(&schedule->look_at);
}

#endif
