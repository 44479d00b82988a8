/* Text that another user has chosen (a process's name, a directory, an entry in a list of the kernel), before a
 * terminal or a file gets it: control characters could do to a terminal what its user never asked for. */
#ifndef DIAG_CLEAN_H
#define DIAG_CLEAN_H

#include <stdio.h>

/* Every byte that belongs to no printable character of UTF-8 becomes a question mark; so do line ends, and the
 * characters that turn the direction of writing. */
void clean_text(char *);

/* Writes the text as a JSON string, with its quotes: for any text, the output is one string (RFC 8259, 7). */
void clean_json(FILE *, const char *);

#endif
