/* Process 1 of a lab: makes the hosts, runs the command on the first, and takes all with it when it ends. */
#pragma once

#include "lab/network/network.h"

/* Runs as the first process of a new process namespace. Ends with the command's exit status; `alive` is a pipe whose
 * other end the starting process has. */
_Noreturn void keeper_run(struct network *, char **command, int alive);
