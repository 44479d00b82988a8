/* Places in the program: where it made an object, posted work, or is now. They are return addresses, which
 * check/findings/symbol.h turns into functions and lines when a finding is shown. */
#ifndef CHECK_FINDINGS_PLACE_H
#define CHECK_FINDINGS_PLACE_H

#include <stdbool.h>

enum { PLACE_FRAMES = 10 };

struct place {
    const void
        *frames[PLACE_FRAMES]; /* the innermost first; those of the library and of the verbs' headers are left out */
    unsigned count;
    bool in_signal; /* a handler of a signal is among the callers */
    bool left_out;  /* the library of place_leave_out called this one */
};

/* Before the first place_here, which then asks the dynamic loader for nothing. */
void place_begin(void);

/* The frames of the library that has this function are between the program and this one, and no places. Before the
 * program runs, for one library. */
void place_leave_out(const void *function);

/* Returns true if this is an address in the library. */
bool place_is_own(const void *);

/* Of a post, which was called from this return address: that address, or the first of its callers that is not in a
 * function of the verbs' own headers, as in programs that are built without optimization. Under no lock. Thread-safe.
 */
const void *place_of_post(const void *address);

/* Where the calling thread is; some microseconds. Under no lock: the unwinder has its own. Thread-safe. */
void place_here(struct place *);

#endif
