/* The reports of processes as tables. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "facts/facts.h"

/* Returns whether there is a table of this name. */
bool objects_exist(const char *name);

/* The list whose name is most like this one; NULL: no name is like it. */
const char *objects_meant(const char *name);

/* All names, as part of a sentence. */
const char *objects_known(void);

struct table;

/* Adds the first two cells of a row: the number, and the program with a remark if it does not answer or is busy. */
void objects_add_process(struct table *, const struct facts_process *);

/* Prints the table of this name (NULL: processes, then queue pairs) over an array of reports. Facts that are not known
 * are shown as "-". */
void objects_print(const json_t *reports, const char *name);

/* Prints the reports as JSON, of each process only the list of this name; NULL: all of the report. */
void objects_emit(const json_t *reports, const char *name);
