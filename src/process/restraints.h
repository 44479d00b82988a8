/* The threads that may not move data, and why. */
#pragma once

#include <stdbool.h>

struct process;

enum restraint {
    RESTRAINT_FORKED = 1,  /* no thread may: process->forked */
    RESTRAINT_FOREIGN = 2, /* only the helper may: a driver copies registered memory, and must not be called from each
                              place where a program calls verbs (wire/foreign/foreign.h) */
};

/* Lets no thread move data from now on. */
void restraints_end_all(struct process *);

/* Lets only the helper move data from now on; on return no other thread does. Under process->control. */
void restraints_leave_to_helper(struct process *);
/* Lets all threads move data again. Under process->control. */
void restraints_lift(struct process *);

/* Returns true if only the helper moves data now. Its copies into a GPU's memory have ended when process->progress
 * is free; a free lock of a queue pair does not mean that. */
bool restraints_leave_all(const struct process *);

/* Returns true if this thread may move data now. */
bool restraints_permit(const struct process *);

/* restraints_be_helper makes the calling thread the helper, until it ends; restraints_is_helper asks for that. */
void restraints_be_helper(void);
bool restraints_is_helper(void);
