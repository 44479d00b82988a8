/* The choices of a user of softverbs sim, and the end of a run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/memory.h"

enum { SIM_PROGRAMS = 64 };

/* A program of the command line, and when it begins in virtual time. */
struct sim_program {
    char **words;
    uint64_t from;
};

/* By the command line. */
struct sim_choice {
    uint64_t seed;
    uint32_t every;             /* 0: the seed draws it */
    enum sim_strategy strategy; /* SIM_STRATEGIES: the seed chooses */
    unsigned limit;             /* real seconds */
    unsigned patience;          /* ms of processor time before a loop over memory is stopped */
    bool without_paths;
    unsigned count;
    struct sim_program programs[SIM_PROGRAMS];
};

/* How a run ended. */
struct sim_end {
    int status; /* the largest of the programs', or SIM_EXIT_ */
    uint64_t hash, now, decisions;
};
