/* Whether a run repeats. */
#pragma once

#include "simulate/options.h"

/* Runs the seed twice, the second time without its output. Returns the run's exit status, or EXIT_NEGATIVE after
 * sentences that name the first call that differs. */
int verify_run(const struct command *, const struct sim_options *);
