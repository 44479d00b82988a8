/* The fewest turns, and the fewest faults, that end a run as it ended before. */
#pragma once

#include "simulate/options.h"

/* Runs the seed, or the file that is replayed, and then again and again with fewer turns; writes the fewest that it
 * found to options->save. Returns 0, or the exit status after a sentence. */
int shrink_run(const struct command *, const struct sim_options *);
