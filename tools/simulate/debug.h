/* gdb at the user's terminal, attached to one process of a run (softverbs sim --gdb). */
#pragma once

#include <stdbool.h>

#include "command.h"
#include "simulate/choice.h"

/* Whether there is a gdb, and the word is a process's number or a program's name. 0, or the exit status after a
 * sentence. */
int debug_check(const struct command *, const char *word);

/* Keeps what gdb is to have and the programs are not: the environment as it is, and, where a debugger is wanted, the
 * standard input, in whose place the programs read /dev/null. Called in the launcher before it prepares both. */
void debug_keep(const struct sim_choice *);

/* Writes down which process is wanted. */
void debug_want(struct sim_run *, const struct sim_choice *);

/* Starts gdb when that process has begun, and lets it go on when gdb has attached, or ended. */
void debug_serve(struct sim_run *);

/* Whether gdb runs. Time stands still where it stops a process, so limits of real time do not count. */
bool debug_lives(void);

/* Whether gdb has this process: its end is not the end to others before gdb has seen it. */
bool debug_has(pid_t);

/* The child of this number has ended. */
void debug_reaped(pid_t);

/* The run is over with its processes alive: stops the one that gdb has, so that gdb shows it, until gdb ends. */
void debug_show(const struct sim_run *);

/* After the run: waits until gdb ends, and says so if the process has never begun. */
void debug_await(const struct sim_run *);

/* In the process that the user's shell knows, after the run: has the terminal again. */
void debug_take_terminal(void);
