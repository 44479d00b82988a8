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
    bool quiet;        /* write no line on stderr about each step */

    enum bisect_end end;
    struct failing all;                      /* with all behaviours */
    struct proof proofs[ADVERSE_BEHAVIOURS]; /* the behaviours that are each enough, or one list of several */
    unsigned count;
    struct failing rest; /* with all behaviours except these */
};

/* Looks for the seeds, and unless scan_only for the behaviours, with which the program fails; `end` says the result. */
void bisect_run(struct bisect *);

/* The name of a behaviour. */
const char *bisect_word(enum adverse);

void bisect_print(const struct bisect *);
void bisect_print_json(const struct bisect *);
