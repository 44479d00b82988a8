/* The width of the reader's screen, and text that fits it. */
#pragma once

#include <stddef.h>
#include <stdio.h>

enum { SCREEN_NARROWEST = 40 };

/* Columns of the terminal that the stream is: $COLUMNS, else the terminal's width, else 80; at least SCREEN_NARROWEST.
 * SIZE_MAX: the stream is not a terminal, and lines are as long as they must be, for grep and awk. */
size_t screen_width(FILE *);

/* Prints the text, which begins at column `at`, up to the end of a line. Text beyond the width continues in a new line,
 * broken between words, at column `indent`. */
void screen_wrap(FILE *, size_t width, size_t at, size_t indent, const char *text);

/* Prints a sentence as a line, wrapped if the screen is narrower; without memory prints nothing. */
void screen_print(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));
