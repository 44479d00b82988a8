/* Lines of the log for a workflow of GitHub (SOFTVERBS_LOG_FORMAT=github). */
#ifndef DIAG_LOG_GITHUB_H
#define DIAG_LOG_GITHUB_H

#include <stddef.h>

enum { LOG_GITHUB_LINES = 10 }; /* of a process become annotations: GitHub shows so many of a step */

enum { LOG_GITHUB_ENTRIES = 200 }; /* of a process stand in the summary, which GitHub takes up to 1 MiB */

/* Writes the line, which has no end, as a workflow command, "::warning title=softverbs::...", to `to`; returns its
 * length. The first LOG_GITHUB_LINES of a process, and "" from then on: 0. Thread-safe. */
size_t log_github_command(const char *line, char *to, size_t size);

/* Adds the line to the summary of the job's step, the file that $GITHUB_STEP_SUMMARY names, if that is there; the first
 * LOG_GITHUB_ENTRIES of a process. Thread-safe. */
void log_github_summary(const char *line);

#endif
