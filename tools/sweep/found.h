/* The findings of a sweep's runs: printed, kept in a file to continue from, and reported as JUnit XML. */
#pragma once

#include <stdbool.h>

#include "sweep/attempt.h"
#include "sweep/plan.h"

extern const char *const sweep_words[SWEEP_KINDS]; /* "calls" */

struct found;

/* `path` names the file that has earlier runs of this program, if it exists, and gets the new runs; NULL: no file.
 * Returns NULL and errno on failure; EEXIST: the file is something else. */
struct found *found_open(const char *path, char *const *program, bool around);
void found_close(struct found *);

/* Returns whether the fault was tried. */
bool found_has(const struct found *, const struct fault *);

/* Prints a line if the program did not bear the fault: it must end with an error, or well where nothing was lost. */
void found_add(struct found *, const struct fault *, const struct attempt *);

/* Prints the sum. True: the program bore all. */
bool found_conclude(const struct found *);

/* Writes the findings to the file. False and errno: it can't. */
bool found_write_junit(const struct found *, const char *path);
