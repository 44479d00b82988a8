/* Why a thread may not move data, and which may. */
#ifndef PROCESS_RESTRAINTS_H
#define PROCESS_RESTRAINTS_H

#include <stdbool.h>

struct process;

enum restraint {
    RESTRAINT_FORKED = 1,  /* none does: process->forked */
    RESTRAINT_FOREIGN = 2, /* only the helper does: there is memory that a driver copies, which may not be called from
                              each place where a program calls verbs (wire/foreign/foreign.h) */
};

/* Nothing moves data from now on. */
void restraints_end_all(struct process *);

/* Only the helper moves data from now on; when this returns, no other thread does. Under process->control. */
void restraints_leave_to_helper(struct process *);
/* All threads do again. Likewise. */
void restraints_lift(struct process *);

/* Returns true if only the helper moves data now. Its copies into memory of a GPU have ended where process->progress is
 * free, not where a queue pair's lock is. */
bool restraints_leave_all(const struct process *);

/* Returns true if this thread may move data now. */
bool restraints_permit(const struct process *);

/* The first makes the calling thread the helper, for as long as it lives; the second returns true if it is. */
void restraints_be_helper(void);
bool restraints_is_helper(void);

#endif
