/* The copies that the child of a fork has of its parent's objects: a copy of every object, of which a program's
 * destructors may destroy some. Threads that were inside of verbs do not exist in the child, so the locks that they
 * held would never be given back, and the data that they were changing may be half changed. The descriptors behind the
 * copy are the parent's own ones, so bytes that are read from a pipe here are missing there.
 *
 * So destroying in a copy (process->inherited) is a matter of the lists and counts under process->control, which the
 * fork waited for, and of memory: nothing else is touched, waited for, taken back or sent. */
#ifndef VERBS_CONTEXT_INHERIT_H
#define VERBS_CONTEXT_INHERIT_H

struct process;

/* In the child, whose only thread holds no lock: gives back the locks of all objects, and closes the descriptors that
 * stand for something on the host. */
void inherit_process(struct process *);

#endif
