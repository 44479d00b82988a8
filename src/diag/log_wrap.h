/* Lines of the log for a person at a terminal (SOFTVERBS_LOG=terminal). */
#pragma once

#include <stddef.h>

enum { LOG_WRAP_INDENT = 4 };

/* Columns of the terminal that the descriptor is; 0: it is no terminal, or one that does not know. errno may change. */
size_t log_wrap_columns(int fd);

/* Writes the line to `to`, broken between words where it is wider than `columns`, and returns the length; each line but
 * the first begins with LOG_WRAP_INDENT spaces. 0: it needs no break, or `columns` is below 40 (a window that is too
 * narrow to read a sentence in), or `size` bytes are not enough. */
size_t log_wrap(const char *line, size_t columns, char *to, size_t size);
