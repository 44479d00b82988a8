/* The reports of all live processes of a directory, which src/report/report.c writes. */
#ifndef TOOLS_REPORTS_H
#define TOOLS_REPORTS_H

#include <jansson.h>
#include <stddef.h>

/* An array with an object for each process, also for one that does not answer ("answers" is false): the caller's. NULL
 * and a sentence: the directory can't be read. */
json_t *reports_collect(const char *directory, char *why, size_t why_size);

/* The object that the process in this slot answers to a request within that time, or NULL: the caller's. */
json_t *reports_ask(const char *directory, unsigned slot, const char *request, int milliseconds);

/* A list of what the live processes answer to this request; those that do not answer within a second are left out, and
 * `silent`, if it is not NULL, becomes the number of one of them. */
json_t *reports_ask_all(const char *directory, const char *request, int *silent);

#endif
