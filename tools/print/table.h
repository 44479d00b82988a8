/* Rows of text in columns as wide as they must be. Where they don't fit the screen, each row is several lines, the
 * second and further ones indented. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table {
    size_t columns;
    bool wraps;   /* the last column is words: it continues below itself rather than in a separate line */
    char **cells; /* row after row; the first row is the heading */
    size_t count, room;
};

/* Adds the next cell, row by row. Characters that would move a terminal's cursor become '?'. */
void table_add(struct table *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds cells with these texts, such as a whole row. */
#define table_add_row(table, ...) table_add_texts(table, (const char *const[]){__VA_ARGS__, NULL})
void table_add_texts(struct table *, const char *const *texts);

/* Prints all rows, the last column without padding, and empties the table. */
void table_print(struct table *, FILE *);
