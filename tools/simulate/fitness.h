/* Whether a program can be simulated. */
#pragma once

#include <stdbool.h>

/* False after a sentence: a program that ignores preloaded libraries, makes threads in its own way, or is instrumented.
 * A program that is not there, or is no program, passes: starting it says why. */
bool fitness_check(const char *name);
