/* The pages of `softverbs top` as lines of text: a list, a queue pair, and the keys. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "top/rows.h"
#include "top/terminal.h"

/* Shows a line. */
typedef void page_line(void *context, enum terminal_style, const char *text);

/* The part of a list that is shown. */
struct page {
    const struct top_choice *choice;
    const struct top_row *rows;
    size_t count;
    size_t from, most; /* the first row, and how many at most */
    size_t moved;      /* the number of columns after the names that are left out at the left */
    size_t columns;    /* letters in a line of the screen */
    size_t selected;   /* a row; count: no row */
};

/* Writes the titles, and the rows below. */
void page_list(const struct page *, page_line *, void *context);

/* The number of columns that do not fit at the right. */
size_t page_hidden(const struct page *);

/* Writes lines about a queue pair in one look, with its counters and its story; `pid` 0: any process. */
void page_pair(const char *directory, const struct top_look *, long pid, long qp, page_line *, void *context,
               size_t columns);

/* Writes the sums over all processes. */
void page_sum(const struct top_look *before, const struct top_look *now, char *text, size_t size);

/* Writes the keys, and the meanings of the columns of both lists. */
void page_help(page_line *, void *context);
