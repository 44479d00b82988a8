/* Lines of the log for which their reader has no room just now: a pipe that is full, a terminal that is stopped
 * (Ctrl-S). No thread waits for it, since lines are written under every lock. Some hundred lines are kept; the next
 * line, log_settle and the end of the process, which gives the reader some time, write them first. A line that finds no
 * room here is lost, and a later one says how many were. Thread-safe; any lock. */
#ifndef DIAG_LOG_ROOM_H
#define DIAG_LOG_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#include "diag/output.h"

/* Writes or keeps a line, which ends in a newline. Nothing is kept for a reader that is gone, or a disk that is full.
 */
void log_room_write(const struct output *, const char *line, size_t length);

/* Writes of those that are kept what there is room for. Costs a load where there are none. */
void log_room_settle(const struct output *);

/* The same, and waits: a fifth of a second while the reader takes nothing, two seconds at most. */
void log_room_end(const struct output *);

/* Returns true if lines are kept. */
bool log_room_waits(void);

#endif
