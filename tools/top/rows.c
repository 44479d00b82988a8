#include "top/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/port.h"

#define TEXT(title, width, key, form, meaning) {TOP_TEXT, title, width, key, form, meaning},
#define LEVEL(title, width, key, meaning) {TOP_LEVEL, title, width, key, TOP_NUMBER, meaning},
#define RATE(title, width, key, meaning) {TOP_RATE, title, width, key, TOP_NUMBER, meaning},
#define HELPER(title, width, meaning) {TOP_HELPER, title, width, "helper", TOP_NUMBER, meaning},
static const struct top_column of_processes[] = {
#define LIST_PROCESSES
#include "top/columns.def"
#undef LIST_PROCESSES
};

static const struct top_column of_pairs[] = {
#include "top/columns.def"
};

#undef TEXT
#undef LEVEL
#undef RATE
#undef HELPER

const struct top_list top_processes = {of_processes, sizeof of_processes / sizeof *of_processes, 2, false};
const struct top_list top_pairs = {of_pairs, sizeof of_pairs / sizeof *of_pairs, 3, true};
_Static_assert(sizeof of_processes / sizeof *of_processes <= TOP_COLUMNS_MOST, "room in a row");
_Static_assert(sizeof of_pairs / sizeof *of_pairs <= TOP_COLUMNS_MOST, "room in a row");

/* The source of rows: the objects of now and of the look before, which is NULL where there is none. */
struct source {
    const struct top_choice *choice;
    const json_t *report, *old_report; /* of the process */
    const json_t *object, *old;        /* of the row: the process, too, or one of its queue pairs */
    double seconds;                    /* between them */
};

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* --- values */

/* The sum of a counter over the devices of a process and the packets that were for no queue pair; NAN: it did not
 * answer. */
static double counted_by_process(const json_t *report, const char *key)
{
    const json_t *traffic = json_object_get(report, "traffic"), *device;
    double sum = (double)port_total(json_object_get(json_object_get(report, "strays"), key));
    size_t i;
    json_array_foreach(traffic, i, device) sum += (double)port_total(json_object_get(device, key));
    return traffic ? sum : NAN;
}

static double counted(const struct source *source, const json_t *object, const char *key)
{
    if (!source->choice->list->pairs)
        return counted_by_process(object, key);
    const json_t *traffic = json_object_get(object, "traffic");
    return traffic ? (double)port_total(json_object_get(traffic, key)) : NAN;
}

static double level_of_pairs(const json_t *report, const char *key)
{
    const json_t *pairs = json_object_get(report, "qps"), *qp;
    double sum = 0;
    size_t i;
    if (json_is_array(json_object_get(report, key)))
        return (double)json_array_size(json_object_get(report, key));
    json_array_foreach(pairs, i, qp) sum += (double)number_of(qp, key);
    return pairs ? sum : NAN;
}

static double level(const struct source *source, const char *key)
{
    if (!source->choice->list->pairs)
        return level_of_pairs(source->object, key);
    const json_t *value = json_object_get(source->object, key);
    return json_is_integer(value) ? (double)json_integer_value(value) : NAN;
}

/* A counter that has become smaller is another's: the number of a process or queue pair was given again. */
static double rate(const struct source *source, double now, double before)
{
    double grown = now - before;
    return source->seconds > 0 && grown >= 0 ? grown / source->seconds : NAN;
}

static double helper(const struct source *source)
{
    const json_t *now = json_object_get(source->report, "helper");
    const json_t *before = json_object_get(source->old_report, "helper");
    if (!now || (!before && !source->choice->totals))
        return NAN;
    double seconds = json_real_value(now);
    return source->choice->totals ? seconds : 100 * rate(source, seconds, json_real_value(before));
}

static double value_of(const struct source *source, const struct top_column *column)
{
    if (column->kind == TOP_HELPER)
        return helper(source);
    if (column->kind == TOP_RATE) {
        double now = counted(source, source->object, column->key);
        return source->choice->totals ? now
               : source->old          ? rate(source, now, counted(source, source->old, column->key))
                                      : NAN;
    }
    const json_t *value = json_object_get(source->object, column->key);
    return column->kind == TOP_LEVEL ? level(source, column->key)
           : json_is_integer(value)  ? (double)json_integer_value(value)
                                     : NAN;
}

/* --- texts */

/* "0x1a2b3c/4711", "0x1a2b3c/net", "0x1a2b3c" */
static void write_peer(const json_t *qp, char text[TOP_CELL])
{
    int length = snprintf(text, TOP_CELL, "0x%llx", (unsigned long long)number_of(qp, "peer_qp") & 0xffffff);
    if (json_is_integer(json_object_get(qp, "peer_pid")))
        snprintf(text + length, TOP_CELL - (size_t)length, "/%lld", (long long)number_of(qp, "peer_pid"));
    else if (json_is_true(json_object_get(qp, "network")))
        snprintf(text + length, TOP_CELL - (size_t)length, "/net");
}

/* Before the name of a process that did not answer stands why. */
static void write_word(const json_t *object, const char *key, char text[TOP_CELL])
{
    const char *word = json_string_value(json_object_get(object, key));
    const char *why = strcmp(key, "program")                              ? ""
                      : !json_is_true(json_object_get(object, "answers")) ? "silent:"
                      : json_is_true(json_object_get(object, "busy"))     ? "busy:"
                                                                          : "";
    if (word)
        snprintf(text, TOP_CELL, "%s%.*s", why, TOP_CELL - 8, word);
}

static void write_text(const struct source *source, const struct top_column *column, char text[TOP_CELL])
{
    const json_t *object =
        !strcmp(column->key, "pid") || !strcmp(column->key, "program") ? source->report : source->object;
    const json_t *value = json_object_get(object, column->key);
    if (column->form == TOP_WORD)
        write_word(object, column->key, text);
    else if (column->form == TOP_PEER && json_is_integer(value))
        write_peer(object, text);
    else if (json_is_integer(value))
        snprintf(text, TOP_CELL, column->form == TOP_HEX ? "0x%llx" : "%lld", (long long)json_integer_value(value));
}

static void fill(struct top_row *row, const struct source *source)
{
    const struct top_list *list = source->choice->list;
    row->pid = (long)number_of(source->report, "pid");
    row->qp = list->pairs ? (long)number_of(source->object, "number") : -1;
    for (size_t i = 0; i < list->count; i++) {
        row->values[i] = value_of(source, &list->columns[i]);
        if (list->columns[i].kind == TOP_TEXT)
            write_text(source, &list->columns[i], row->texts[i]);
    }
    if (!strcmp(list->columns[0].key, "pid"))
        row->values[0] = (double)row->pid;
}

/* --- which */

static bool is_wanted(const struct top_row *row, const struct top_choice *choice)
{
    bool found = !*choice->filter;
    for (size_t i = 0; i < choice->list->count && !found; i++)
        found = choice->list->columns[i].kind == TOP_TEXT && strcasestr(row->texts[i], choice->filter);
    return found;
}

static const json_t *find(const json_t *list, const char *key, const json_t *wanted)
{
    const json_t *each;
    size_t i;
    json_array_foreach(list, i,
                       each) if (json_equal(json_object_get(each, key), json_object_get(wanted, key))) return each;
    return NULL;
}

/* Rows as they are made. */
struct rows {
    struct top_row *list;
    size_t count, room;
};

static void add(struct rows *rows, const struct source *source)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 64;
        struct top_row *more = realloc(rows->list, room * sizeof *more);
        if (!more)
            return;
        rows->list = more;
        rows->room = room;
    }
    struct top_row *row = &rows->list[rows->count];
    memset(row, 0, sizeof *row);
    fill(row, source);
    rows->count += is_wanted(row, source->choice);
}

static void add_pairs(struct rows *rows, struct source *source)
{
    const json_t *old = json_object_get(source->old_report, "qps"), *list = json_object_get(source->report, "qps");
    size_t i;
    source->object = source->old = NULL;
    if (!list)
        add(rows, source);
    json_array_foreach(list, i, source->object)
    {
        source->old = find(old, "number", source->object);
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
    struct rows rows = {0};
    struct source source = {.choice = choice, .seconds = before->reports ? now->seconds - before->seconds : 0};
    size_t i;
    json_array_foreach(now->reports, i, source.report)
    {
        source.old_report = find(before->reports, "pid", source.report);
        source.object = source.report;
        source.old = source.old_report;
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

/* Five letters at most: "999", "1.23k" is "1.2k", "45M". */
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
