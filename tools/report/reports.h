/* The reports of all live processes of a directory, which src/report/report.c writes. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* An array with an object for each process, also for one that does not answer ("answers" is false): the caller's. NULL
 * and a sentence: the directory can't be read. */
json_t *reports_collect(const char *directory, char *why, size_t why_size);

/* The answer, an object of the caller's, of the process in this slot within `milliseconds`; NULL: no answer. */
json_t *reports_ask(const char *directory, unsigned slot, const char *request, int milliseconds);

/* A list of the live processes' answers to this request; a process that does not answer within a second is left out,
 * and `silent`, if it is not NULL, becomes the number of such a process. */
json_t *reports_ask_all(const char *directory, const char *request, int *silent);
