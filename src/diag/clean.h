/* Cleaning text that another user has chosen (a process's name, a directory, an entry in a list of the kernel), before
 * a terminal or a file gets it: its control characters could make a terminal do what its user never asked for. */
#pragma once

#include <stdio.h>

/* Replaces every byte that is not part of a printable character of UTF-8 by a question mark; also line ends, and the
 * characters that turn the direction of writing. */
void clean_text(char *);

/* Writes the text as a JSON string, with its quotes: for any text, the output is one string (RFC 8259, 7). */
void clean_json(FILE *, const char *);
