/* Watches a run: gives the token on after an end, stops loops over memory, and reports why nothing runs. */
#pragma once

#include "simulate/choice.h"
#include "simulate/streams.h"

/* Gives the token to the first thread, and returns when all have ended, or can't. */
struct sim_end watch_run(struct sim_run *, const struct sim_choice *, struct streams *);
