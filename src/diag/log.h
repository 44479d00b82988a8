/* The log that a user asked for: SOFTVERBS_LOG=error|warn|info|debug, to stderr or to SOFTVERBS_LOG_FILE. Silent
 * otherwise. SOFTVERBS_LOG=terminal, which `softverbs run` sets by default, is warn where stderr is a terminal and
 * prints nothing elsewhere. Thread-safe; one write(2) a line, which begins with "softverbs: PROGRAM[PID] ". Errors and
 * warnings that are not printed are kept as well (last_lines.h), except under SOFTVERBS_LOG=none. */
#pragma once

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

/* Returns true if a line of this level is printed or kept. */
static inline bool log_wanted(enum log_level level)
{
    return unlikely((int)level <= atomic_load_explicit(&log_threshold, memory_order_relaxed));
}

/* Writes the text as a line, if the level is wanted. */
void log_write(enum log_level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the text as a line at any level, unless the user said SOFTVERBS_LOG=none. */
void log_always(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum { LOG_LINES_A_SECOND = 100, LOG_LINES_ON_TERMINAL = 5 };

/* Writes the text, which names what was refused, dropped or failed, then the reason's sentence and number. At most
 * LOG_LINES_A_SECOND lines of a reason are written in a second (LOG_LINES_ON_TERMINAL, unless a level was asked for);
 * the next line of any reason in a later second, or log_settle, says how many were left out. */
void log_reason(enum log_level, enum reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* log_reason without the sentence, for a text that says more than the sentence. */
void log_cause(enum log_level, enum reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* True: log_reason and log_cause would write nothing, and one more line is counted as left out. For callers that a
 * program may run many times a second, before they compose a text. */
bool log_leaves_out(enum log_level, enum reason);

/* Writes a line of another kind than reasons, with the same limit: `kind` is below LOG_KINDS, and `name` names the kind
 * in the line that says how many were left out. */
enum { LOG_KINDS = 128 };
void log_limited(enum log_level, unsigned kind, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes how many lines were left out until now. */
void log_settle(void);
