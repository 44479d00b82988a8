#include "top/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OF_qp, OF_process };

#define TEXT(title, width, kind, fact, form, meaning)                                                                  \
    {TOP_TEXT, title, width, form, meaning, offsetof(struct facts_##kind, fact), .of_process = OF_##kind},
#define PAIRS(title, width, meaning) {TOP_PAIRS, title, width, TOP_NUMBER, meaning},
#define LEVEL(title, width, fact, meaning)                                                                             \
    {TOP_LEVEL, title, width, TOP_NUMBER, meaning, .at = offsetof(struct facts_qp, fact)},
#define RATE(title, width, name, meaning) {TOP_RATE, title, width, TOP_NUMBER, meaning, .counter = EVENT_##name},
#define RATE_OF_SUM(title, width, name, meaning)                                                                       \
    {TOP_RATE, title, width, TOP_NUMBER, meaning, .counter = SEEN_SUM(name)},
#define HELPER(title, width, meaning) {TOP_HELPER, title, width, TOP_NUMBER, meaning},
static const struct top_column of_processes[] = {
#define LIST_PROCESSES
#include "top/columns.def"
#undef LIST_PROCESSES
};

static const struct top_column of_pairs[] = {
#include "top/columns.def"
};

static const struct top_column of_stat[] = {
#define LIST_STAT
#include "top/columns.def"
};

#undef TEXT
#undef LEVEL
#undef PAIRS
#undef RATE
#undef RATE_OF_SUM
#undef HELPER

const struct top_list top_processes = {of_processes, sizeof of_processes / sizeof *of_processes, 2, false};
const struct top_list top_pairs = {of_pairs, sizeof of_pairs / sizeof *of_pairs, 3, true};
const struct top_list top_stat = {of_stat, sizeof of_stat / sizeof *of_stat, 0, false};
_Static_assert(sizeof of_processes / sizeof *of_processes <= TOP_COLUMNS_MOST, "room in a row");
_Static_assert(sizeof of_pairs / sizeof *of_pairs <= TOP_COLUMNS_MOST, "room in a row");

/* The source of a row: a process, or one of its queue pairs, now and at the look before; NULL: it did not exist, or the
 * row is the process's. */
struct source {
    const struct top_choice *choice;
    const struct seen_process *process, *old_process;
    const struct facts_qp *qp, *old_qp;
    double helper, old_helper;
    double seconds; /* between the looks; 0: there was no look before */
};

/* --- values */

static double counted(const struct seen_process *process, const struct facts_qp *qp, const struct top_column *column)
{
    if (!qp)
        return seen_counted(process, column->counter);
    return seen_counted_in(facts_json(&qp->traffic), column->counter);
}

static const struct fact_number *number_at(const void *facts, const struct top_column *column)
{
    return (const struct fact_number *)((const char *)facts + column->at);
}

/* The number of a queue pair, or the sum over the process's queue pairs; NAN: not known. */
static double level(const struct source *source, const struct top_column *column)
{
    const struct seen_process *process = source->process;
    double sum = 0;
    if (source->choice->list->pairs)
        return source->qp && number_at(source->qp, column)->known ? (double)number_at(source->qp, column)->value : NAN;
    for (size_t i = 0; i < process->qp_count; i++)
        sum += (double)number_at(&process->qps[i], column)->value;
    return process->own.qps.of ? sum : NAN;
}

/* NAN: not known, or the counter became smaller, as another process or queue pair has got the number. */
static double rate(const struct source *source, double now, double before)
{
    double grown = now - before;
    return source->seconds > 0 && grown >= 0 ? grown / source->seconds : NAN;
}

static double helper(const struct source *source)
{
    return source->choice->totals ? source->helper : 100 * rate(source, source->helper, source->old_helper);
}

static double rate_of(const struct source *source, const struct top_column *column)
{
    bool pairs = source->choice->list->pairs;
    if (pairs && !source->qp)
        return NAN;
    double now = counted(source->process, source->qp, column);
    if (source->choice->totals)
        return now;
    return rate(source, now, pairs && !source->old_qp ? NAN : counted(source->old_process, source->old_qp, column));
}

/* The struct that has the column's fact; NULL: the row has no such struct. */
static const void *facts_for(const struct source *source, const struct top_column *column)
{
    return column->of_process ? (const void *)&source->process->own : (const void *)source->qp;
}

static double value_of(const struct source *source, const struct top_column *column)
{
    const void *facts = facts_for(source, column);
    switch (column->kind) {
    case TOP_HELPER:
        return helper(source);
    case TOP_RATE:
        return rate_of(source, column);
    case TOP_LEVEL:
        return level(source, column);
    case TOP_PAIRS:
        return source->process->own.qps.of ? (double)facts_count(&source->process->own.qps) : NAN;
    default:
        return facts && column->form != TOP_WORD && number_at(facts, column)->known
                   ? (double)number_at(facts, column)->value
                   : NAN;
    }
}

/* --- texts */

/* "0x1a2b3c/4711", "0x1a2b3c/net", "0x1a2b3c" */
static void write_peer(const struct facts_qp *qp, char text[TOP_CELL])
{
    int length = snprintf(text, TOP_CELL, "0x%llx", (unsigned long long)qp->peer_qp.value & 0xffffff);
    if (qp->peer_pid.known)
        snprintf(text + length, TOP_CELL - (size_t)length, "/%d", (int)qp->peer_pid.value);
    else if (facts_is(&qp->network))
        snprintf(text + length, TOP_CELL - (size_t)length, "/net");
}

/* The word before the name of a process that did not answer, or was too busy to list its objects; "" of others. */
static const char *why_silent(const struct facts_process *process)
{
    return !facts_is(&process->answers) ? "silent:" : facts_is(&process->busy) ? "busy:" : "";
}

static void write_text(const struct source *source, const struct top_column *column, char text[TOP_CELL])
{
    const void *facts = facts_for(source, column);
    const char *const *word = (const char *const *)((const char *)facts + column->at);
    if (!facts)
        return;
    if (column->form == TOP_WORD && *word)
        snprintf(text, TOP_CELL, "%s%.*s", column->of_process ? why_silent(&source->process->own) : "", TOP_CELL - 8,
                 *word);
    else if (column->form == TOP_WORD || !number_at(facts, column)->known)
        return;
    else if (column->form == TOP_PEER)
        write_peer(facts, text);
    else
        snprintf(text, TOP_CELL, column->form == TOP_HEX ? "0x%llx" : "%llu",
                 (unsigned long long)number_at(facts, column)->value);
}

static void fill(struct top_row *row, const struct source *source)
{
    const struct top_list *list = source->choice->list;
    row->pid = (long)source->process->own.pid.value;
    row->qp = !list->pairs ? -1 : source->qp ? (long)source->qp->number.value : 0;
    for (size_t i = 0; i < list->count; i++) {
        row->values[i] = value_of(source, &list->columns[i]);
        if (list->columns[i].kind == TOP_TEXT)
            write_text(source, &list->columns[i], row->texts[i]);
    }
}

/* --- which rows */

static bool is_wanted(const struct top_row *row, const struct top_choice *choice)
{
    bool found = !*choice->filter;
    for (size_t i = 0; i < choice->list->count && !found; i++)
        found = choice->list->columns[i].kind == TOP_TEXT && strcasestr(row->texts[i], choice->filter);
    return found;
}

/* Rows while they are made; the list has room for all. */
struct rows {
    struct top_row *list;
    size_t count;
};

static void add(struct rows *rows, const struct source *source)
{
    struct top_row *row = &rows->list[rows->count];
    memset(row, 0, sizeof *row);
    fill(row, source);
    rows->count += is_wanted(row, source->choice);
}

static void add_pairs(struct rows *rows, struct source *source)
{
    if (!source->process->own.qps.of)
        add(rows, source);
    for (size_t i = 0; i < source->process->qp_count; i++) {
        source->qp = &source->process->qps[i];
        source->old_qp = seen_qp(source->old_process, source->qp->number.value);
        add(rows, source);
    }
}

/* --- the order */

static const struct top_choice *ordered_by;

/* Unknown values come last, whatever the direction. */
static int compare_numbers(double a, double b, bool ascending)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    int order = (a > b) - (a < b);
    return ascending ? order : -order;
}

static int compare(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;
    size_t column = ordered_by->sort;
    const struct top_column *sort = &ordered_by->list->columns[column];
    int words = sort->kind == TOP_TEXT && sort->form == TOP_WORD ? strcasecmp(a->texts[column], b->texts[column]) : 0;
    int order = words ? (ordered_by->ascending ? words : -words)
                      : compare_numbers(a->values[column], b->values[column], ordered_by->ascending);
    if (!order)
        order = (a->pid > b->pid) - (a->pid < b->pid);
    return order ? order : (a->qp > b->qp) - (a->qp < b->qp);
}

struct top_row *top_rows(const struct top_look *before, const struct top_look *now, const struct top_choice *choice,
                         size_t *count)
{
    size_t most = now->seen.count;
    for (size_t i = 0; i < now->seen.count; i++)
        most += now->seen.processes[i].qp_count;
    struct rows rows = {.list = calloc(most + 1, sizeof *rows.list)};
    for (size_t i = 0; rows.list && i < now->seen.count; i++) {
        const struct seen_process *process = &now->seen.processes[i];
        const struct seen_process *old = seen_find(&before->seen, process->own.pid.value);
        struct source source = {.choice = choice,
                                .process = process,
                                .old_process = old,
                                .helper = now->helpers[i],
                                .old_helper = old ? before->helpers[old - before->seen.processes] : NAN,
                                .seconds = before->reports ? now->seconds - before->seconds : 0};
        if (choice->list->pairs)
            add_pairs(&rows, &source);
        else
            add(&rows, &source);
    }
    ordered_by = choice;
    if (rows.count)
        qsort(rows.list, rows.count, sizeof *rows.list, compare);
    *count = rows.count;
    return rows.list;
}

double top_grown(const struct top_look *before, const struct top_look *now, const struct top_column *column)
{
    double sum = 0;
    for (size_t i = 0; i < now->seen.count; i++) {
        const struct seen_process *process = &now->seen.processes[i];
        const struct seen_process *old = seen_find(&before->seen, process->own.pid.value);
        double grown = seen_counted(process, column->counter) - (old ? seen_counted(old, column->counter) : 0);
        sum += isnan(grown) ? 0 : grown;
    }
    return sum;
}

/* --- columns and cells */

size_t top_column_find(const struct top_list *list, const char *title)
{
    size_t length = strlen(title);
    for (size_t i = 0; i < list->count; i++) {
        const char *each = list->columns[i].title;
        if (length && !strncasecmp(each, title, length) && (!each[length] || !strcmp(each + length, "/s")))
            return i;
    }
    return list->count;
}

void top_title(const struct top_column *column, bool totals, char title[TOP_CELL])
{
    snprintf(title, TOP_CELL, "%s", totals && column->kind == TOP_HELPER ? "CPU s" : column->title);
    char *per_second = strstr(title, "/s");
    if (totals && per_second)
        *per_second = 0;
}

/* Writes at most five letters: "999", "1.2k" for 1230, "45M". */
static void write_scaled(double value, char text[TOP_CELL])
{
    static const char units[] = " kMGTPE";
    size_t unit = 0;
    while (value >= 999.5 && unit + 2 < sizeof units) {
        value /= 1000;
        unit++;
    }
    bool part = value < 9.95 && (unit || value != (double)(long)value);
    snprintf(text, TOP_CELL, "%.*f%.*s", part, value, unit > 0, &units[unit]);
}

void top_cell(const struct top_row *row, const struct top_list *list, size_t column, char text[TOP_CELL])
{
    const struct top_column *kind = &list->columns[column];
    if (kind->kind == TOP_TEXT)
        snprintf(text, TOP_CELL, "%s", *row->texts[column] ? row->texts[column] : "-");
    else if (isnan(row->values[column]))
        strcpy(text, "-");
    else if (kind->kind == TOP_HELPER)
        snprintf(text, TOP_CELL, "%.1f", row->values[column]);
    else
        write_scaled(row->values[column], text);
    if (kind->width < TOP_CELL)
        text[kind->width] = 0;
}

void top_look_end(struct top_look *look)
{
    seen_end(&look->seen);
    free(look->helpers);
    json_decref(look->reports);
    *look = (struct top_look){0};
}
