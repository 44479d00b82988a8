/* Whether this thread is in the checker's own work: looking for a line of the program, or reporting a finding.
 * Libraries that it calls then (libdw, and those that libdw uses) free memory of theirs, which is no mistake of the
 * program. */
#ifndef CHECK_FINDINGS_INSIDE_H
#define CHECK_FINDINGS_INSIDE_H

/* How many of the two functions below are open. Of this thread alone. */
extern _Thread_local unsigned inside_checker __attribute__((tls_model("initial-exec")));

/* They nest. Cancellation is off between them, so that a thread never leaves one open. */
static inline void inside_begin(void)
{
    inside_checker++;
}

static inline void inside_end(void)
{
    inside_checker--;
}

#endif
