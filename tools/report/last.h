/* The last lines of the log of each process, which src/diag/last_lines.h keeps in the directory. */
#ifndef TOOLS_LAST_H
#define TOOLS_LAST_H

#include <jansson.h>

/* An array with an object for each process of which there is a file, the one that wrote last at the end; pid 0: of all.
 * The caller's. Nothing in a file is trusted; one that belongs to another user is left out. */
json_t *last_collect(const char *directory, int pid);

void last_print(const json_t *list);

#endif
