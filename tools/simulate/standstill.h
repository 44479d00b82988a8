/* Why a simulated run does not go on, in sentences on standard error. */
#pragma once

#include "sim/memory.h"
#include "simulate/choice.h"
#include "simulate/streams.h"

/* No thread can run: says for each what it waits in, and shows its stack. Returns SIM_EXIT_DEADLOCK or
 * SIM_EXIT_LIVELOCK. */
int standstill_report(struct sim_run *, const struct sim_choice *, struct streams *);

/* Names calls that the kernel answered though they may wait there, with the token: such a run need not repeat. */
void standstill_name_unanswered(const struct sim_run *);

/* The name of a system call, or the words of a place. */
const char *standstill_name(unsigned call);

/* The limit of real time has passed. Returns SIM_EXIT_LIMIT. */
int standstill_report_limit(const struct sim_run *, unsigned seconds);
