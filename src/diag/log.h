/* What a user asked to be told: SOFTVERBS_LOG=error|warn|info|debug, to stderr or to SOFTVERBS_LOG_FILE. Silent
 * otherwise. Thread-safe; one write(2) a line. */
#ifndef DIAG_LOG_H
#define DIAG_LOG_H

#include <stdbool.h>

#include "diag/diag.h"

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern int log_threshold; /* enum log_level; read through log_wanted */

/* Reads the environment; further calls do nothing. */
void log_start(void);

static inline bool log_wanted(enum log_level level)
{
    return __builtin_expect((int)level <= log_threshold, 0);
}

/* Writes "softverbs: LEVEL: TEXT" and a line end, if the level is wanted. */
void log_write(enum log_level, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { LOG_LINES_A_SECOND = 100 };

/* Writes a reason with its number and sentence behind the text: what was refused, dropped or failed. Of each reason at
 * most so many lines in a second; the next one after that says how many were left out. */
void log_reason(enum log_level, enum reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
