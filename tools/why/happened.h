/* The last events of a completion queue, a shared receive queue or a process. */
#pragma once

#include <jansson.h>

/* Returns a list of answers, each with "sentences", of the live processes (`pid` 0: of all) that have the object
 * `number` of this kind: "cq" or "srq", or "process". `silent` gets the number of a process that did not answer
 * (reports.h). */
json_t *happened_collect(const char *directory, const char *kind, unsigned long number, int pid, int *silent);

/* Adds the line of one event, "12:01:02.345 MEANING (FIELDS): REASON.", to a list of sentences. */
void happened_tell(json_t *list, const json_t *event);

/* Prints the sentences of each element of a list: of happened_collect's, or of stories of connections. */
void happened_print(const json_t *list);
