/* Whether this thread does the checker's own work: looking for a line of the program, or reporting a finding. Libraries
 * that the checker then calls (libdw, and those that libdw uses) free their own memory, which is no mistake of the
 * program. */
#pragma once

#include "base/uncancelled.h"

/* How many scopes this thread has begun and not ended. */
extern _Thread_local unsigned inside_checker __attribute__((tls_model("initial-exec")));

/* Returns the argument for checker_scope_end. Pairs nest. Cancellation is off between the two, so that a thread never
 * leaves a scope open. */
static inline int checker_scope_begin(void)
{
    int before = uncancelled_begin();
    inside_checker++;
    return before;
}

static inline void checker_scope_end(int before)
{
    inside_checker--;
    uncancelled_end(before);
}
