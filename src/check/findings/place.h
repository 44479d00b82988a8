/* Places in the program: where it made an object, posted work, or is now. They are return addresses, which
 * check/findings/symbol.h turns into functions and lines when a finding is shown. */
#pragma once

#include <stdbool.h>

enum { PLACE_FRAMES = 10 };

struct place {
    const void *frames[PLACE_FRAMES]; /* the innermost first, without functions of the library and the verbs' headers */
    unsigned count;
    bool in_signal; /* a signal handler is among the callers */
    bool left_out;  /* the library of place_leave_out called this library */
};

/* Prepares place_here, which then needs nothing from the dynamic loader. Call it before the first place_here. */
void place_begin(void);

/* From now on leaves out the frames of the library that has this function, which is between the program and this
 * library. Before the program runs, for one library. */
void place_leave_out(const void *function);

/* Writes where the calling thread is. Takes some microseconds and the unwinder's locks. Under no lock. Thread-safe. */
void place_here(struct place *);
