/* Runs of a program under adverse lists: which seeds and which behaviours make it fail. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adverse/plan.h"
#include "sweep/attempt.h"

enum { SEEDS_MOST = 1000, TRIALS_LIST = 512 };

struct trials {
    char **program;
    struct adverse_plan plan; /* the list that the user gave; its seed is not used */
    uint64_t first, last;     /* seeds */
    unsigned tries;           /* runs after which a list counts as borne; 0: by how often the program fails */
    unsigned seconds;         /* after which a run counts as hung; 0: by the first run without the adverse adapter */
    unsigned runs;            /* the number of runs so far */
    bool broken;              /* a run could not be started; errno says why */
    struct attempt attempt;   /* the last run */
    char list[TRIALS_LIST];   /* the last run's adverse list */
};

/* The seeds of a range under which one run failed. */
struct failing {
    uint64_t seeds[SEEDS_MOST];
    unsigned count;
    uint32_t shown; /* behaviours that the log of these runs names, bits as in struct adverse_plan */
};

/* The result of one list. */
struct proof {
    uint32_t on;
    uint64_t seed; /* under which it failed */
    enum sweep_outcome outcome;
    int value;
    struct failing failing; /* trials_scan */
};

/* Writes the list under which these behaviours alone are on. */
void trials_write_list(const struct trials *, uint32_t on, uint64_t seed, char list[TRIALS_LIST]);

/* Runs the program without the adverse adapter. True: it failed. */
bool trials_fail_without(struct trials *);

/* Runs the program under each seed of the range, with these behaviours on. */
void trials_scan(struct trials *, uint32_t on, struct failing *);

/* Runs until a run fails, `tries` times at most, first under the seeds of `first` and then under the others. True: a
 * run failed; proof->seed, outcome and value are the run's. */
bool trials_fail(struct trials *, const struct failing *first, struct proof *proof);

/* The user's `tries`, or 5 to 100 runs: if fewer than 100, a program that failed `failed` times of `of` fails at least
 * once in 98 of 100 such series. */
unsigned trials_wanted(const struct trials *, unsigned failed, unsigned of);
