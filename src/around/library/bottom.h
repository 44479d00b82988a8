/* The bottom of all layers in front of another libibverbs: each call goes on to that library, by its name or by the
 * pointer that its object had (held.h). */
#pragma once

#include "around/library/frame.h"

/* Finds the library's functions, and returns the calls, to which adopt.h adds. Once, before the others here. */
struct calls *bottom_begin(void);

/* The functions that a call of the program uses: the functions of the layers, if there are any, and the bottom for what
 * the library itself calls inside of a call. Thread-safe. */
const struct calls *bottom_around(void);

/* True: these are the functions of no layer. */
bool bottom_is(const struct calls *);

/* The functions of no layer. */
const struct calls *bottom_own(void);

/* True: the library, or a driver's, has made the call, for a call of the program that is under way in this thread. */
bool bottom_is_inside(void);

/* Runs a function of a driver's library as the library's own part of this call. Returns its result. */
void *bottom_run(enum frame_call, void *(*run)(const void *), const void *context);

/* A call of the program by these functions, in a frame if they are of layers. */
#define BOTTOM_CALL(answer, call, calls, arguments)                                                                    \
    (bottom_is(calls) ? calls_get(calls, call) arguments : FRAMED_##answer(call, calls, arguments))
