/* The rows that `softverbs top` shows of two looks at the processes: a row for each process, or for each queue pair. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "facts/seen.h"

enum { TOP_COLUMNS_MOST = 20, TOP_CELL = 20 };

/* How a column's text is made of its value. */
enum top_form { TOP_WORD, TOP_NUMBER, TOP_HEX, TOP_PEER };

enum top_kind { TOP_TEXT, TOP_PAIRS, TOP_LEVEL, TOP_RATE, TOP_HELPER };

struct top_column {
    enum top_kind kind;
    const char *title;
    size_t width;
    enum top_form form;
    const char *meaning;
    size_t at;        /* the offset of its fact */
    bool of_process;  /* the fact is one of the process, in every list */
    unsigned counter; /* an event or SEEN_SUM (facts/seen.h) */
};

/* The columns of a list. */
struct top_list {
    const struct top_column *columns;
    size_t count, names; /* `names` columns name the row, and stay at the left */
    bool pairs;          /* a row for each queue pair */
};

extern const struct top_list top_processes, top_pairs, top_stat;

struct top_row {
    long pid, qp;                    /* qp: -1 in the row of a process */
    double values[TOP_COLUMNS_MOST]; /* NAN: not known */
    char texts[TOP_COLUMNS_MOST][TOP_CELL];
};

/* A look, and when it was. */
struct top_look {
    json_t *reports;  /* NULL: no look */
    struct seen seen; /* the reports, read */
    double *helpers;  /* of each process the seconds of processor time of the library's thread; NAN: not known */
    double seconds;   /* of CLOCK_MONOTONIC */
};

/* Frees what a look has. */
void top_look_end(struct top_look *);

/* Which rows are wanted, and in which order. */
struct top_choice {
    const struct top_list *list;
    size_t sort;            /* a column */
    bool ascending, totals; /* totals: what was counted until now instead of rates */
    const char *filter;     /* a part of a name, a number, a peer or a state, in any case; "": all */
};

/* The rows, which the caller frees by free(3). `before` without reports: there was no look, and rates are not known.
 * Nothing in a report is trusted. */
struct top_row *top_rows(const struct top_look *before, const struct top_look *now, const struct top_choice *,
                         size_t *count);

/* The growth of the column's counter over all processes. A process that did not answer at a look adds nothing. */
double top_grown(const struct top_look *before, const struct top_look *now, const struct top_column *);

/* The column with this title, in any case and with or without "/s"; the number of columns: no column has it. */
size_t top_column_find(const struct top_list *, const char *title);

/* The title of a column as it is shown; with totals "OUT/s" is "OUT". */
void top_title(const struct top_column *, bool totals, char title[TOP_CELL]);

/* A cell as it is shown: at most `width` letters, "-" where nothing is known. */
void top_cell(const struct top_row *, const struct top_list *, size_t column, char text[TOP_CELL]);
