/* The choices of a user of softverbs sim, and the end of a run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/network/network.h"
#include "sim/memory.h"

enum { SIM_PROGRAMS = 64 };

/* A program of the command line, and when it begins in virtual time. */
struct sim_program {
    char **words;
    uint64_t from;
    unsigned host; /* the number of its host */
};

/* Ways in which a run ends. */
enum sim_ending { SIM_ENDED, SIM_DEADLOCK, SIM_LIVELOCK, SIM_LATE, SIM_NOT_RUN };

/* By the command line. */
struct sim_choice {
    uint64_t seed;
    uint32_t every;             /* 0: the seed draws it */
    enum sim_strategy strategy; /* SIM_STRATEGIES: the seed chooses */
    uint32_t limit;             /* real seconds */
    uint32_t patience;          /* ms of processor time before a loop over memory is stopped */
    bool without_paths;
    const struct sim_turn *turns; /* of a file that is replayed; NULL: the seed chooses */
    uint32_t turn_count;
    bool logs;               /* the calls of the run are wanted */
    struct network *network; /* the hosts and links; NULL: one host */
    const char *gdb;         /* a process's number, or a program's name, that gdb is to have; NULL: none */
    unsigned count;
    struct sim_program programs[SIM_PROGRAMS];
};

/* How a run ended. */
struct sim_end {
    enum sim_ending ending;
    int status; /* the largest of the programs', or SIM_EXIT_ */
    uint64_t hash, now, decisions;
    uint64_t output; /* a hash of all that was written */
};
