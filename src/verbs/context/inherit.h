/* The copies that the child of a fork has of all its parent's objects; a program's destructors may destroy some of
 * them. Threads that were inside of verbs do not exist in the child, so the locks that they held would never be given
 * back, and the data that they were changing may be half changed. The descriptors of the copies are the parent's own
 * ones, so bytes that are read from a pipe here are missing there.
 *
 * So a copy (process->inherited) is destroyed only in the lists and counts under process->control, which the fork
 * waited for, and in memory: nothing else is touched, waited for, taken back or sent. */
#pragma once

struct process;

/* Gives back the locks of all objects in the child, whose only thread holds no lock, and closes the descriptors that
 * represent something on the host. */
void inherit_process(struct process *);
