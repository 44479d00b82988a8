/* The last lines of the log of each process, which src/diag/last_lines.h keeps in the directory. */
#pragma once

#include <jansson.h>

/* An array, the caller's, with an object for each process that has a file, the last writer first; pid 0: all
 * processes. Nothing in a file is trusted; another user's file is left out, unless root asks. */
json_t *last_collect(const char *directory, int pid);

void last_print(const json_t *list);
