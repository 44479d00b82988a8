/* Which thread of a simulated run has the token next. Pure: a run's memory is all that is read and written, no function
 * of the C library is called and no time passes, as the callers are inside a program's system call, or a signal's
 * handler. The caller holds the token, or is the launcher while no thread holds it. */
#pragma once

#include "sim/memory.h"

/* Makes an empty run of this seed out of zeroed memory. `strategy` may be SIM_STRATEGIES: the seed draws it. `every`:
 * at one in so many scheduling points SIM_UNIFORM gives the token on; 0: the seed draws the number. */
void sim_begin(struct sim_run *, uint64_t seed, enum sim_strategy strategy, uint32_t every);

/* Adds a thread that is ready at `from`. Returns its number, or SIM_NONE where there are SIM_THREADS. */
unsigned sim_add(struct sim_run *, pid_t, uint64_t from);

/* Forgets a thread that has ended, or with a `tid` of 0 all threads and timers of a process; then all that wait may see
 * it. */
void sim_remove(struct sim_run *, pid_t, pid_t tid);

/* The count with which SIM_TRIES, SIM_SPINS and SIM_STOPS compare sim_thread.seen. */
uint64_t sim_count(const struct sim_run *, enum sim_wait);

/* Whether a timer of this process has to be served. */
bool sim_timer_is_due(const struct sim_run *, pid_t);

/* The thread that runs after a scheduling point of the running thread `here`, which could go on; it may be `here`. */
unsigned sim_at_point(struct sim_run *, unsigned here);

/* The thread that runs when the holder waits or has ended; virtual time jumps to the next deadline if none is ready.
 * SIM_NONE: no thread will ever run, and run->over is set. */
unsigned sim_next(struct sim_run *);

/* Which of `count` waiters a wake-up wakes, from 0. count > 0. */
unsigned sim_pick_waiter(struct sim_run *, unsigned count);
