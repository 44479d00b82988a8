/* Which behaviours a program does not bear. */
#pragma once

#include "adverse/trials.h"

enum bisect_end {
    BISECT_NEVER,  /* it failed under no seed */
    BISECT_ALWAYS, /* it fails without the adverse adapter, too */
    BISECT_BARE,   /* it fails with no behaviour on, too: packets instead of direct access are enough */
    BISECT_LOST,   /* it failed under some seed, and not again */
    BISECT_FOUND,
    BISECT_BROKEN, /* it can't be run; errno says why */
    BISECT_ENDS
};

struct bisect {
    struct trials trials;
    unsigned without, without_failed; /* runs without the adverse adapter */
    enum sweep_outcome outcome;       /* the end of the last of these runs that failed */
    int value;
    struct proof bare; /* with no behaviour on */
    bool scan_only;    /* find only the seeds that fail */

    enum bisect_end end;
    struct failing all;                      /* with all behaviours */
    struct proof proofs[ADVERSE_BEHAVIOURS]; /* behaviours, each of them enough; or one list of several */
    unsigned count;
    struct failing rest; /* with all behaviours except these */
};

/* Runs the search; `progress` gets a sentence about each step. */
void bisect_run(struct bisect *, void (*progress)(const char *));

/* The name of a behaviour. */
const char *bisect_word(enum adverse);

void bisect_print(const struct bisect *);
void bisect_print_json(const struct bisect *);
