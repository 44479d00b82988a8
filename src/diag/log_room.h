/* Lines of the log for which their reader has no room now: a pipe that is full, a terminal that is stopped (Ctrl-S). No
 * thread waits for the reader, since lines are written under every lock. 64 KiB of lines are kept; the next line,
 * log_settle and the end of the process, which gives the reader some time, write them first. A line that has no room
 * here is lost, and a later line says how many were lost. Thread-safe; any lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "diag/output.h"

/* Writes or keeps a line, which ends in a newline. Nothing is kept for a reader that is closed, or a disk that is full.
 */
void log_room_write(const struct output *, const char *line, size_t length);

/* Writes the kept lines for which there is room. Costs two loads if log_room_waits returns false. */
void log_room_settle(const struct output *);

/* log_room_settle that waits for the reader: a fifth of a second while it takes nothing, two seconds at most. */
void log_room_end(const struct output *);

/* Returns true if lines are kept, or were lost and no line has reported that yet. */
bool log_room_waits(void);
