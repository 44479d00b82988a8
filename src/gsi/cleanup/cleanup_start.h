/* Starting the cleanup process: the library's own file is run as a program, without a fork, so that the program's
 * memory is neither copied nor marked for copying. */
#pragma once

/* Starts the process with this shared memory, not as the program's child. Returns 0 and, in *held, a descriptor whose
 * closing shows the program's end; or errno and, in *why, the obstacle. No signal is raised, and wait(2) sees no
 * child. */
int cleanup_start(int memory, int *held, const char **why);
