/* Timers, ordered by when they expire: a pairing heap whose nodes are in their objects, so that any number needs no
 * memory. Setting and stopping one that is set costs a logarithm, amortised. */
#ifndef BASE_TIMERS_H
#define BASE_TIMERS_H

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

/* Sets it to that time, whether it was set or not. */
void timer_set(struct timers *, struct timer *, nanos at);
/* A timer that is not set stays so. */
void timer_stop(struct timers *, struct timer *);

/* When the first expires; NANOS_NEVER when none is set. */
nanos timers_next(const struct timers *);

/* Stops and calls all that have expired by now. */
void timers_expire(struct timers *, nanos now);

#endif
