/* Whether this thread does the checker's own work: looking for a line of the program, or reporting a finding. Libraries
 * that the checker then calls (libdw, and those that libdw uses) free their own memory, which is no mistake of the
 * program. */
#pragma once

/* How many checker_scope_begin of this thread are open. */
extern _Thread_local unsigned inside_checker __attribute__((tls_model("initial-exec")));

/* The two nest. Cancellation is off between them, so that a thread never leaves one open. */
static inline void checker_scope_begin(void)
{
    inside_checker++;
}

static inline void checker_scope_end(void)
{
    inside_checker--;
}
