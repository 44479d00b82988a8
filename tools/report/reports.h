/* The reports of all live processes of a directory, which src/report/report.c writes. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Returns an array with an object for each process, also for one that does not answer ("answers" is false). The caller
 * releases it. NULL, with a sentence in `why`: the directory can't be read. */
json_t *reports_collect(const char *directory, char *why, size_t why_size);

/* Returns the answer of the process in this slot, an object that the caller releases. NULL: no answer came within
 * `milliseconds`. */
json_t *reports_ask(const char *directory, unsigned slot, const char *request, int milliseconds);

/* Returns an array of the live processes' answers to this request, which the caller releases. A process that does not
 * answer within a second is left out, and `silent`, if it is not NULL, becomes the number of such a process. */
json_t *reports_ask_all(const char *directory, const char *request, int *silent);
