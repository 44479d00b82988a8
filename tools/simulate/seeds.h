/* Runs of many seeds. */
#pragma once

#include "simulate/options.h"

/* Runs each seed of the range, as many at a time as there are processors, and prints a table of how they ended, with
 * the first seed of each. Returns the exit status: the largest of the runs'. */
int seeds_run(const struct command *, const struct sim_options *);
