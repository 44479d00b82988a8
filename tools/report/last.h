/* The last lines of the log of each process, which src/diag/last_lines.h keeps in the directory. */
#pragma once

#include <jansson.h>

/* Returns an array with an object for the process `pid` (0: for each process) that has a file, the last writer first.
 * The caller releases it. Nothing in a file is trusted; another user's file is left out, unless root asks. */
json_t *last_collect(const char *directory, int pid);

/* Prints such an array. */
void last_print(const json_t *list);
