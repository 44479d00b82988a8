/* Why a simulated run does not go on, in sentences on standard error. */
#pragma once

#include "sim/memory.h"
#include "simulate/streams.h"

/* No thread can run: says for each what it waits in, and shows its stack. Returns SIM_EXIT_DEADLOCK or
 * SIM_EXIT_LIVELOCK. */
int standstill_report(struct sim_run *, struct streams *);

/* The limit of real time has passed. Returns SIM_EXIT_LIMIT. */
int standstill_report_limit(const struct sim_run *, unsigned seconds);
