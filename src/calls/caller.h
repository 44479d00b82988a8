/* The place of the program from which the calling thread called this library: the same in each run of the same program
 * with the same libraries, wherever they are loaded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CALLER_WHERE = 48 };

struct caller {
    uint32_t place;           /* a hash; 0: not known, as with a C library without backtrace(3) */
    char where[CALLER_WHERE]; /* "pingpong+0x1234": the return address, for addr2line(1); "": not known */
};

/* Finds the place: the innermost two frames outside of this library and librdmacm, as a program may have a function of
 * its own around the call. Takes some microseconds and the unwinder's locks; the caller may be in a batch. errno may
 * change. Thread-safe. */
struct caller caller_find(void);
