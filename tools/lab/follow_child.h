/* The commands of a lab stay beside the program, which is a child of theirs. */
#pragma once

#include <sys/types.h>

/* Waits for the child, and passes SIGTERM and SIGHUP on to it meanwhile; a terminal's signals reach it by themselves.
 * Returns its exit status, or 128 plus its signal; EXIT_SELF: the wait failed. Call it once in a process. */
int follow_child(pid_t);
