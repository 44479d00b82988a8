/* Decides for `softverbs run` and `lab` whether to say at the end that no process opened a device. */
#pragma once

#include <stdbool.h>

/* Returns true if the user at a terminal would want to know of this program (a list that ends with NULL): not with
 * --quiet, nor of a shell without arguments, in which the user decides what runs. */
bool unopened_is_wanted(char *const *program);

/* Prepares the environment of the program that this process becomes next. On failure no message follows at its end. */
void unopened_begin(char *const *program);
