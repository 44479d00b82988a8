/* What the runs of a sweep have shown: printed, kept in a file to go on from, reported as JUnit XML. */
#ifndef TOOLS_SWEEP_FOUND_H
#define TOOLS_SWEEP_FOUND_H

#include <stdbool.h>

#include "sweep/attempt.h"

enum sweep_kind { SWEEP_CALLS, SWEEP_COMPLETIONS, SWEEP_EVENTS, SWEEP_KINDS };

extern const char *const sweep_words[SWEEP_KINDS]; /* "calls" */

struct found;

/* `path`: of the file that has earlier runs, if there is one, and gets those that come; NULL: none. NULL and errno. */
struct found *found_open(const char *path);
void found_close(struct found *);

/* The number of the last fault of this kind that was tried; 0: none was. */
unsigned found_last(const struct found *, enum sweep_kind);

/* Prints a line if the program did not bear the fault. */
void found_add(struct found *, enum sweep_kind, unsigned nth, const struct attempt *);

/* Prints the sum. True: the program bore all. */
bool found_conclude(const struct found *);

/* False and errno. */
bool found_write_junit(const struct found *, const char *path);

#endif
