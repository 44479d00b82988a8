/* Lines of the log for a workflow of GitHub (SOFTVERBS_LOG_FORMAT=github). */
#pragma once

#include <stddef.h>

enum { LOG_GITHUB_LINES = 10 }; /* a process's lines that become annotations; GitHub shows ten of a step */

enum { LOG_GITHUB_ENTRIES = 200 }; /* a process's lines in the summary, which GitHub limits to 1 MiB */

/* Writes a line without its end to `to` as a workflow command, "::warning title=softverbs::...", and returns its
 * length; 0 after the first LOG_GITHUB_LINES of the process. Thread-safe. */
size_t log_github_command(const char *line, char *to, size_t size);

/* Adds the line to the summary of the job's step, the file that $GITHUB_STEP_SUMMARY names, if that exists; only the
 * first LOG_GITHUB_ENTRIES of a process. Thread-safe. */
void log_github_summary(const char *line);
