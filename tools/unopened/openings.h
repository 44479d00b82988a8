/* How often processes have opened a device, and the message if no process has.
 *
 * `softverbs run` puts into the environment of the program that it becomes (SOFTVERBS_OPENINGS) the process's number,
 * the count of openings, and the directory, with blanks between. When that program ends, the library that `run`
 * preloads compares (unopened/at_end.c). Part of the command and of that library: no allocation, errno may change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads how many processes have ever opened a device in this directory. False: that is not known. It leaves a
 * descriptor open until the process ends or becomes another program: closing it would give back locks of the table
 * (ipc/table.h). */
bool openings_count(const char *directory, uint32_t *count);

/* Returns what a user of this program may do so that a device is opened, as a sentence. */
const char *openings_cure(const char *program);
