/* The bottom of all layers in front of another libibverbs: each call goes on to that library, by its name or by the
 * pointer that its object had (held.h). */
#pragma once

#include "calls/calls.h"

/* Finds the library's functions, and returns the calls, to which adopt.h adds. Once, before the others here. */
struct calls *bottom_begin(void);

/* The functions that a call of the program uses: the functions of the layers, if there are any, and the bottom for what
 * the library itself calls inside of a call. Thread-safe. */
const struct calls *bottom_around(void);
