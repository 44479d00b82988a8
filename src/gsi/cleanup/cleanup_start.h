/* Starting the cleanup process: the library's own file is run as a program, without a fork, so that the memory of the
 * program is neither copied nor marked to be. */
#ifndef GSI_CLEANUP_CLEANUP_START_H
#define GSI_CLEANUP_CLEANUP_START_H

/* Starts it with this shared memory, as no child of the program. 0 and a descriptor, whose closing shows it the
 * program's end. Or errno and the obstacle. No signal is raised, and no child can be seen by wait(2). */
int cleanup_start(int memory, int *held, const char **why);

#endif
