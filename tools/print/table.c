#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag/clean.h"
#include "screen.h"

enum {
    GAP = 2,  /* between columns */
    FOLD = 4, /* before the second and further lines of a row */
};

static char no_memory[] = "?"; /* the content of a cell for whose text no memory was left */

void table_add(struct table *table, const char *format, ...)
{
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 64;
        char **cells = reallocarray(table->cells, room, sizeof *cells);
        if (!cells)
            return;
        table->cells = cells;
        table->room = room;
    }
    char *text;
    va_list rest;
    va_start(rest, format);
    if (vasprintf(&text, format, rest) < 0)
        text = no_memory;
    va_end(rest);
    if (text != no_memory)
        clean_text(text);
    table->cells[table->count++] = text;
}

void table_add_texts(struct table *table, const char *const *texts)
{
    for (; *texts; texts++)
        table_add(table, "%s", *texts);
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->count; i += table->columns) {
        size_t length = strlen(table->cells[i]);
        width = length > width ? length : width;
    }
    return width;
}

/* The first column of the table after `first` that does not fit into a line, which begins after `at` letters; if all
 * fit, the number of columns. The last column may be wrapped, if there is room for some words. */
static size_t fold_at(const struct table *table, const size_t *widths, size_t first, size_t at, size_t width)
{
    enum { WORDS = 24 };
    size_t column = first;
    while (column < table->columns) {
        bool last = column + 1 == table->columns;
        size_t least = last && table->wraps && widths[column] > WORDS ? WORDS : widths[column];
        if (column > first && at + least > width)
            break;
        at += widths[column++] + GAP;
    }
    return column;
}

/* Prints the cells of a row from `first` to before `end` as a line. */
static void print_part(const struct table *table, const size_t *widths, char *const *row, size_t first, size_t end,
                       size_t width, FILE *to)
{
    size_t at = first ? FOLD : 0;
    fprintf(to, "%*s", (int)at, "");
    for (size_t column = first; column + 1 < end; at += widths[column++] + GAP)
        fprintf(to, "%-*s", (int)(widths[column] + GAP), row[column]);
    screen_wrap(to, width, at, at, row[end - 1]);
}

static void print_row(const struct table *table, const size_t *widths, char *const *row, size_t width, FILE *to)
{
    for (size_t first = 0, end; first < table->columns; first = end) {
        end = fold_at(table, widths, first, first ? FOLD : 0, width);
        print_part(table, widths, row, first, end, width, to);
    }
}

void table_print(struct table *table, FILE *to)
{
    size_t widths[table->columns], width = screen_width(to);
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = column_width(table, i);
    for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
        print_row(table, widths, table->cells + i, width, to);
    for (size_t i = 0; i < table->count; i++)
        if (table->cells[i] != no_memory)
            free(table->cells[i]);
    free(table->cells);
    *table = (struct table){.columns = table->columns, .wraps = table->wraps};
}
