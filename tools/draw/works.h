/* Which message belongs to which work request. A queue pair sends and ends work in the order in which it was posted. */
#pragma once

#include <stdbool.h>

#include "draw/lookup.h"

struct work {
    uint32_t posted;  /* the transit of its post */
    uint32_t message; /* LOOKUP_NONE: no message yet, or the work needs no message */
    bool local;       /* it needs no packet */
};

/* The work of a queue pair, in its order. */
struct works {
    struct work *list;
    size_t count, room;
    size_t sent, ended; /* work before `sent` has its message, work before `ended` has ended */
};

void works_post(struct works *, uint32_t posted, bool local);

/* Begins a new message and returns the transit that posted its work; LOOKUP_NONE: not known. */
uint32_t works_send(struct works *, uint32_t message);

/* Ends the oldest work and returns its message; LOOKUP_NONE: it had no message, or is not known. */
uint32_t works_end(struct works *);

/* Forgets all that was posted before. */
void works_reset(struct works *);
void works_free(struct works *);
