/* One run of a seed, in namespaces that end with it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "command.h"
#include "sim/memory.h"
#include "simulate/choice.h"

/* How it went, in memory that the run's process shares with its parent. */
struct once {
    bool has_run; /* false: it ended before, after a sentence */
    struct sim_end end;
    uint64_t stops; /* loops over memory that were stopped */
    bool counter_is_real;
    bool turns_lost;     /* there were more than SIM_TURNS */
    uint32_t turn_count; /* 0 of a run that read its turns */
    struct sim_turn turns[SIM_TURNS];
    uint32_t logged; /* of a choice that logs */
    struct sim_logged log[SIM_LOGGED];
};

/* NULL after a sentence. */
struct once *once_make(void);

/* Runs the programs to their end; `quiet`: neither their output nor reports are written. Returns the exit status. */
int once_run(const struct command *, const struct sim_choice *, struct once *, bool quiet);

/* Likewise, but returns the process that runs them; negative after a sentence. */
pid_t once_begin(const struct command *, const struct sim_choice *, struct once *, bool quiet);

/* Writes the line of a run that two runs of a seed share. */
void once_sum_up(const struct sim_choice *, const struct once *);
