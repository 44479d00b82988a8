/* Timers, ordered by when they expire: a pairing heap whose nodes are in their objects, so that timers need no memory.
 * Setting a timer, or stopping one that is set, costs a logarithm, amortised. */
#pragma once

#include <stdbool.h>

#include "base/nanos.h"

struct timer {
    nanos at;                               /* meaningful while it is set */
    void (*expired)(struct timer *, nanos); /* may set and stop timers, also this one, and free what it is in */
    struct timer *child, *sibling, *before; /* before: the elder sibling, or the parent of the eldest */
    bool set;
};

struct timers {
    struct timer *first;
};

/* Sets the timer to that time, whether it was set or not. */
void timer_set(struct timers *, struct timer *, nanos at);
/* Stops the timer if it is set. */
void timer_stop(struct timers *, struct timer *);

/* When the first timer expires; NANOS_NEVER: no timer is set. */
nanos timers_next(const struct timers *);

/* Stops all timers that have expired at `now`, and calls them. */
void timers_expire(struct timers *, nanos now);
