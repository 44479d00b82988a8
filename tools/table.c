#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag/clean.h"

static char no_memory[] = "?"; /* what a cell holds when there was none for its text */

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

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->count; i += table->columns) {
        size_t length = strlen(table->cells[i]);
        width = length > width ? length : width;
    }
    return width;
}

void table_print(struct table *table, FILE *to)
{
    size_t widths[table->columns];
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = column_width(table, i);
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        if (column + 1 < table->columns)
            fprintf(to, "%-*s  ", (int)widths[column], table->cells[i]);
        else
            fprintf(to, "%s\n", table->cells[i]);
    }
    for (size_t i = 0; i < table->count; i++)
        if (table->cells[i] != no_memory)
            free(table->cells[i]);
    free(table->cells);
    *table = (struct table){.columns = table->columns};
}
