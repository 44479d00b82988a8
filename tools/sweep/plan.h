/* The faults of a sweep: of each call at each place of the program the first, the last and one in the middle. */
#pragma once

#include <stddef.h>

#include "sweep/counting.h"

enum sweep_kind { SWEEP_CALLS, SWEEP_COMPLETIONS, SWEEP_EVENTS, SWEEP_KINDS };

struct fault {
    enum sweep_kind kind;
    uint32_t place; /* calls/caller.h */
    char call[PLACES_CALL], where[CALLER_WHERE];
    unsigned nth, count; /* of the calls there, in the process that makes the most */
};

struct plan {
    struct fault *faults;
    size_t count;
};

/* Makes the plan of what was counted: the first call of each place, in the order in which the program came to them,
 * then the last, then one in the middle. False: no memory. The caller frees the faults. */
bool plan_make(const struct counting *, struct plan *);
