/* The command line of softverbs sim. */
#pragma once

#include "command.h"
#include "simulate/choice.h"

/* The work of the command. */
enum sim_task { SIM_ONCE, SIM_SEEDS, SIM_VERIFY, SIM_SHRINK, SIM_CARRY };

struct sim_options {
    struct sim_choice choice;
    enum sim_task task;
    uint64_t first, last; /* SIM_SEEDS */
    bool until_failure;
    struct lab_plan plan;      /* no hosts: one without a link */
    const char *replay, *save; /* files of turns; NULL: no file */
};

extern const char *const sim_strategy_words[SIM_STRATEGIES];

/* 0, or the exit status after a sentence. */
int options_read(const struct command *, int argc, char **argv, struct sim_options *);
