#include "objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/text/suggest.h"
#include "counters/port.h"
#include "facts/read.h"
#include "print/emit.h"
#include "print/table.h"

/* A column: the offset of a fact, whose form says how it is shown. */
struct column {
    const char *title;
    size_t at, of; /* `of`: the offset of a second number, as in "3 of 8"; 0: no second number */
};

/* A table: of the process itself, or of the objects in one of its lists. */
struct view {
    const char *title; /* "queue pairs" */
    const struct facts_kind *kind;
    size_t list; /* the offset of the list in struct facts_process */
    struct column columns[11];
};

/* clang-format off */
#define AT(kind, name) offsetof(struct facts_##kind, name)
#define COLUMN(kind, title, name) {title, AT(kind, name)}
#define OF(kind, title, name, second) {title, AT(kind, name), AT(kind, second)}
/* clang-format on */

static const struct view views[] = {
    {"processes",
     &facts_of_process,
     0,
     {COLUMN(process, "QPS", qps), COLUMN(process, "CQS", cqs), COLUMN(process, "SRQS", srqs),
      COLUMN(process, "MRS", mrs), COLUMN(process, "PDS", pds), COLUMN(process, "ADVERSE", adverse)}},
    {"queue pairs",
     &facts_of_qp,
     offsetof(struct facts_process, qps),
     {COLUMN(qp, "QP", number), COLUMN(qp, "TYPE", type), COLUMN(qp, "STATE", state),
      COLUMN(qp, "FIRST ERROR", first_error_name), COLUMN(qp, "PEER QP", peer_qp), COLUMN(qp, "PEER PID", peer_pid),
      OF(qp, "SENDS", send_posted, send_wr), OF(qp, "RECEIVES", recv_posted, recv_wr), COLUMN(qp, "SEND CQ", send_cq),
      COLUMN(qp, "RECV CQ", recv_cq), COLUMN(qp, "PD", pd)}},
    {"completion queues",
     &facts_of_cq,
     offsetof(struct facts_process, cqs),
     {COLUMN(cq, "CQ", handle), OF(cq, "WAITING", waiting, size), COLUMN(cq, "ARMED", armed),
      COLUMN(cq, "OVERRUN", overrun), COLUMN(cq, "USERS", users)}},
    {"shared receive queues",
     &facts_of_srq,
     offsetof(struct facts_process, srqs),
     {COLUMN(srq, "SRQ", handle), OF(srq, "RECEIVES", posted, size), COLUMN(srq, "LIMIT", limit),
      COLUMN(srq, "USERS", users), OF(srq, "TAGS", tags, tags_size), COLUMN(srq, "DISABLED", tags_disabled),
      COLUMN(srq, "IN MESSAGES", tags_busy), COLUMN(srq, "MATCHED", matched), OF(srq, "HANDLED", unexpected_reported, unexpected),
      COLUMN(srq, "MASKS", masks)}},
    {"tagged buffers",
     &facts_of_tag,
     offsetof(struct facts_process, tags),
     {COLUMN(tag, "SRQ", srq), COLUMN(tag, "TAG", tag), COLUMN(tag, "MASK", mask), COLUMN(tag, "WR ID", wr_id),
      COLUMN(tag, "BYTES", bytes), COLUMN(tag, "ENABLED", enabled)}},
    {"memory regions",
     &facts_of_mr,
     offsetof(struct facts_process, mrs),
     {COLUMN(mr, "KEY", key), COLUMN(mr, "ADDRESS", address), COLUMN(mr, "BYTES", length), COLUMN(mr, "PD", pd),
      COLUMN(mr, "ACCESS", access)}},
    {"protection domains",
     &facts_of_pd,
     offsetof(struct facts_process, pds),
     {COLUMN(pd, "PD", handle), COLUMN(pd, "USERS", users)}},
    {"connections",
     &facts_of_identifier,
     offsetof(struct facts_process, connections),
     {COLUMN(identifier, "ID", id), COLUMN(identifier, "SPACE", space), COLUMN(identifier, "STATE", state),
      COLUMN(identifier, "SECONDS", seconds), COLUMN(identifier, "LOCAL", local), COLUMN(identifier, "PEER", peer),
      COLUMN(identifier, "QP", qp), COLUMN(identifier, "PEER QP", peer_qp), COLUMN(identifier, "PEER PID", peer_pid),
      COLUMN(identifier, "REPEATS", repeats), COLUMN(identifier, "EVENTS", events)}},
};

enum { VIEWS = sizeof views / sizeof *views, COLUMNS = sizeof views->columns / sizeof *views->columns };

/* The name of a view is the key of its list in a report; "processes" has no list. */
static const char *name_of(const struct view *view)
{
    return view == views ? view->title : facts_at(&facts_of_process, view->list)->name;
}

static const struct view *find_view(const char *name)
{
    for (int i = 0; i < VIEWS; i++)
        if (!strcmp(name_of(&views[i]), name))
            return &views[i];
    return NULL;
}

bool objects_exist(const char *name)
{
    return find_view(name);
}

const char *objects_meant(const char *name)
{
    struct suggestion suggestion = suggest_begin(name);
    for (int i = 0; i < VIEWS; i++)
        suggest_try(&suggestion, name_of(&views[i]));
    return suggestion.meant;
}

const char *objects_known(void)
{
    return "processes, qps, cqs, srqs, tags, mrs, pds or connections";
}

static void add_access(struct table *table, uint64_t flags)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {
        {IBV_ACCESS_LOCAL_WRITE, "local-write"},  {IBV_ACCESS_REMOTE_WRITE, "remote-write"},
        {IBV_ACCESS_REMOTE_READ, "remote-read"},  {IBV_ACCESS_REMOTE_ATOMIC, "remote-atomic"},
        {IBV_ACCESS_MW_BIND, "window-bind"},      {IBV_ACCESS_ZERO_BASED, "zero-based"},
        {IBV_ACCESS_ON_DEMAND, "on-demand"},      {IBV_ACCESS_HUGETLB, "huge-pages"},
        {IBV_ACCESS_RELAXED_ORDERING, "relaxed"},
    };
    char text[160] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (flags & names[i].flag) {
            strcat(text, *text ? "," : "");
            strcat(text, names[i].name);
        }
    table_add(table, "%s", *text ? text : "local-read");
}

/* Adds the counts of a map, or the size of a list. */
static void add_inner(struct table *table, const json_t *value)
{
    char text[512];
    port_list(value, true, text, sizeof text);
    if (json_is_array(value))
        snprintf(text, sizeof text, "%zu", json_array_size(value));
    table_add(table, "%s", *text ? text : "-");
}

static void add_number(struct table *table, enum fact_form form, const struct fact_number *number,
                       const struct fact_number *of)
{
    if (!number->known)
        table_add(table, "-");
    else if (form == FACT_ACCESS)
        add_access(table, number->value);
    else if (form == FACT_QPN || form == FACT_KEY || form == FACT_ADDRESS || form == FACT_HEX)
        table_add(table, "0x%" PRIx64, number->value);
    else if (of)
        table_add(table, "%" PRIu64 " of %" PRIu64, number->value, of->value);
    else
        table_add(table, "%" PRIu64, number->value);
}

static void add_value(struct table *table, const struct view *view, const struct column *column, const char *facts)
{
    const void *value = facts + column->at;
    enum fact_form form = facts_at(view->kind, column->at)->form;
    if (form == FACT_FLAG)
        table_add(table, "%s", !((const struct fact_flag *)value)->known ? "-" : facts_is(value) ? "yes" : "no");
    else if (form == FACT_WORD || form == FACT_TEXT)
        table_add(table, "%s", *(const char *const *)value ? *(const char *const *)value : "-");
    else if (form == FACT_INNER)
        add_inner(table, facts_json(value));
    else
        add_number(table, form, value, column->of ? (const struct fact_number *)(facts + column->of) : NULL);
}

void objects_add_process(struct table *table, const struct facts_process *process)
{
    table_add(table, "%" PRIu64, process->pid.value);
    table_add(table, "%s%s%s", process->program ? process->program : "-",
              facts_is(&process->answers) ? "" : " (does not answer)", facts_is(&process->busy) ? " (busy)" : "");
}

static void add_row(struct table *table, const struct view *view, const struct facts_process *process,
                    const void *facts)
{
    objects_add_process(table, process);
    for (int i = 0; i < COLUMNS && view->columns[i].title; i++)
        add_value(table, view, &view->columns[i], facts);
}

/* Adds a row for each object, or for a process that did not answer. */
static void add_report(struct table *table, const struct view *view, const json_t *report)
{
    struct facts_process process;
    union facts_any any = {0};
    const struct fact_inner *list = (const struct fact_inner *)((const char *)&process + view->list);
    if (!facts_read(&facts_of_process, report, &process))
        return;
    if (view == views || !list->of)
        add_row(table, view, &process, view == views ? (const void *)&process : &any);
    for (size_t i = 0; view != views && i < facts_count(list); i++)
        if (facts_read_at(view->kind, list, i, &any))
            add_row(table, view, &process, &any);
}

static void print_view(const json_t *reports, const struct view *view)
{
    struct table table = {.columns = 2};
    const json_t *report;
    size_t i;
    for (int column = 0; column < COLUMNS && view->columns[column].title; column++)
        table.columns++;
    table_add_row(&table, "PID", "PROGRAM");
    for (size_t column = 2; column < table.columns; column++)
        table_add(&table, "%s", view->columns[column - 2].title);
    json_array_foreach (reports, i, report)
        add_report(&table, view, report);
    if (table.count == table.columns)
        printf("There are no %s.\n", view->title);
    else
        table_print(&table, stdout);
}

void objects_print(const json_t *reports, const char *name)
{
    print_view(reports, name ? find_view(name) : views);
    if (name)
        return;
    puts("");
    print_view(reports, &views[1]);
}

/* The number of objects of each kind. */
static json_t *count_objects(const json_t *report)
{
    json_t *counts = json_object();
    for (int i = 0; i < COLUMNS && views->columns[i].title; i++) {
        const char *name = facts_at(&facts_of_process, views->columns[i].at)->name;
        const json_t *list = facts_member(&facts_of_process, report, views->columns[i].at);
        if (json_is_array(list))
            json_object_set_new(counts, name, json_integer((json_int_t)json_array_size(list)));
    }
    return counts;
}

/* The members that identify the process and its answer, and one list. */
static json_t *pick(const json_t *report, const struct view *view)
{
    const size_t members[] = {AT(process, pid),  AT(process, program), AT(process, answers),
                              AT(process, busy), AT(process, devices), view->list};
    json_t *picked = facts_pick(&facts_of_process, report, members, 6);
    if (view == views)
        json_object_set_new(picked, facts_at(&facts_of_process, AT(process, objects))->name, count_objects(report));
    return picked;
}

void objects_emit(const json_t *reports, const char *name)
{
    json_t *all = json_array(), *report;
    size_t i;
    json_array_foreach ((json_t *)reports, i, report)
        json_array_append_new(all, name ? pick(report, find_view(name)) : json_incref(report));
    emit(all);
}
