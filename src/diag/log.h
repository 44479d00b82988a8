/* The log that a user asked for: SOFTVERBS_LOG=error|warn|info|debug, to stderr or to SOFTVERBS_LOG_FILE. Silent
 * otherwise. SOFTVERBS_LOG=terminal, which `softverbs run` sets by default, is warn where stderr is a terminal and
 * nothing elsewhere. Thread-safe; one write(2) a line, which begins with "softverbs: PROGRAM[PID] ". Errors and
 * warnings that are not printed are kept as well (last_lines.h), except under SOFTVERBS_LOG=none. */
#ifndef DIAG_LOG_H
#define DIAG_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/likely.h"
#include "diag/diag.h"

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern _Atomic int log_threshold; /* enum log_level; read through log_wanted */

/* Reads the environment; further calls do nothing. */
void log_start(void);

/* Returns true if a line of this level is printed now. */
bool log_shown(enum log_level);

/* Returns true if it is printed or kept. */
static inline bool log_wanted(enum log_level level)
{
    return unlikely((int)level <= atomic_load_explicit(&log_threshold, memory_order_relaxed));
}

/* Writes the text as a line, if the level is wanted. */
void log_write(enum log_level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the text as a line at any level, unless the user said SOFTVERBS_LOG=none. */
void log_always(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum { LOG_LINES_A_SECOND = 100, LOG_LINES_ON_TERMINAL = 5 };

/* Writes a reason with its sentence and number behind the text, which names the thing that was refused, dropped or
 * failed. Of each reason at most so many lines in a second (the smaller number, unless a level was asked for); the next
 * line of any reason in a later second says how many were left out, or log_settle. */
void log_reason(enum log_level, enum reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same without the sentence, for a text that says more than it would. */
void log_cause(enum log_level, enum reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* True: log_reason and log_cause would write nothing, and a line that is left out has been counted. For callers on
 * whose way a program may be many times a second, before they compose a text. */
bool log_leaves_out(enum log_level, enum reason);

/* A line of another kind than reasons, of which there are as many in a second: `kind` is below LOG_KINDS, and `name`
 * what the line that says how many were left out calls it. */
enum { LOG_KINDS = 128 };
void log_limited(enum log_level, unsigned kind, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says how many lines were left out until now. */
void log_settle(void);

#endif
