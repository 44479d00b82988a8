#include "objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "print/emit.h"
#include "print/table.h"

/* How a column shows the value of its key. */
enum form {
    FORM_PLAIN,
    FORM_HEX,
    FORM_ACCESS,
    FORM_COUNT, /* the size of a list */
    FORM_OF,    /* "value of second value" */
    FORM_MAP,   /* "name 5, other name 3" */
};

struct column {
    const char *title, *key;
    enum form form;
    const char *second;
};

struct view {
    const char *name;  /* also the key of the list in a report; "processes" has none */
    const char *title; /* in "no ..." */
    struct column columns[11];
};

static const struct view views[] = {
    {"processes",
     "processes",
     {{"QPS", "qps", FORM_COUNT},
      {"CQS", "cqs", FORM_COUNT},
      {"SRQS", "srqs", FORM_COUNT},
      {"MRS", "mrs", FORM_COUNT},
      {"PDS", "pds", FORM_COUNT},
      {"ADVERSE", "adverse", FORM_MAP}}},
    {"qps",
     "queue pairs",
     {{"QP", "number", FORM_HEX},
      {"TYPE", "type"},
      {"STATE", "state"},
      {"FIRST ERROR", "first_error_name"},
      {"PEER QP", "peer_qp", FORM_HEX},
      {"PEER PID", "peer_pid"},
      {"SENDS", "send_posted", FORM_OF, "send_wr"},
      {"RECEIVES", "recv_posted", FORM_OF, "recv_wr"},
      {"SEND CQ", "send_cq"},
      {"RECV CQ", "recv_cq"},
      {"PD", "pd"}}},
    {"cqs",
     "completion queues",
     {{"CQ", "handle"},
      {"WAITING", "waiting", FORM_OF, "size"},
      {"ARMED", "armed"},
      {"OVERRUN", "overrun"},
      {"USERS", "users"}}},
    {"srqs",
     "shared receive queues",
     {{"SRQ", "handle"},
      {"RECEIVES", "posted", FORM_OF, "size"},
      {"LIMIT", "limit"},
      {"USERS", "users"},
      {"TAGS", "tags", FORM_OF, "tags_size"},
      {"DISABLED", "tags_disabled"},
      {"IN MESSAGES", "tags_busy"},
      {"HANDLED", "unexpected_reported", FORM_OF, "unexpected"},
      {"MASKS", "masks", FORM_COUNT}}},
    {"tags",
     "tagged buffers",
     {{"SRQ", "srq"},
      {"TAG", "tag"},
      {"MASK", "mask"},
      {"WR ID", "wr_id"},
      {"BYTES", "bytes"},
      {"ENABLED", "enabled"}}},
    {"mrs",
     "memory regions",
     {{"KEY", "key", FORM_HEX},
      {"ADDRESS", "address", FORM_HEX},
      {"BYTES", "length"},
      {"PD", "pd"},
      {"ACCESS", "access", FORM_ACCESS}}},
    {"pds", "protection domains", {{"PD", "handle"}, {"USERS", "users"}}},
    {"connections",
     "connections",
     {{"ID", "id"},
      {"SPACE", "space"},
      {"STATE", "state"},
      {"SECONDS", "seconds"},
      {"LOCAL", "local"},
      {"PEER", "peer"},
      {"QP", "qp"},
      {"PEER QP", "peer_qp"},
      {"PEER PID", "peer_pid"},
      {"REPEATS", "repeats"},
      {"EVENTS", "events"}}},
};

enum { VIEWS = sizeof views / sizeof *views, COLUMNS = sizeof views->columns / sizeof *views->columns };

static const struct view *find_view(const char *name)
{
    for (int i = 0; i < VIEWS; i++)
        if (!strcmp(views[i].name, name))
            return &views[i];
    return NULL;
}

bool objects_exist(const char *name)
{
    return find_view(name);
}

const char *objects_known(void)
{
    return "processes, qps, cqs, srqs, tags, mrs, pds or connections";
}

static void add_access(struct table *table, json_int_t flags)
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

static void add_plain(struct table *table, const json_t *value)
{
    if (json_is_integer(value))
        table_add(table, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_boolean(value))
        table_add(table, "%s", json_is_true(value) ? "yes" : "no");
    else
        table_add(table, "%s", json_is_string(value) ? json_string_value(value) : "-");
}

static void add_map(struct table *table, const json_t *map)
{
    char text[512] = "-";
    const char *key;
    json_t *each;
    size_t used = 0;
    json_object_foreach((json_t *)map, key, each) if (used < sizeof text) used += (size_t)snprintf(
        text + used, sizeof text - used, "%s%s %" JSON_INTEGER_FORMAT, used ? ", " : "", key, json_integer_value(each));
    table_add(table, "%s", text);
}

static void add_value(struct table *table, const struct column *column, const json_t *object)
{
    const json_t *value = json_object_get(object, column->key);
    bool whole = json_is_integer(value);
    if (column->form == FORM_COUNT && json_is_array(value))
        table_add(table, "%zu", json_array_size(value));
    else if (column->form == FORM_HEX && whole)
        table_add(table, "0x%" PRIx64, (uint64_t)json_integer_value(value));
    else if (column->form == FORM_ACCESS && whole)
        add_access(table, json_integer_value(value));
    else if (column->form == FORM_MAP)
        add_map(table, value);
    else if (column->form == FORM_OF && whole)
        table_add(table, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT, json_integer_value(value),
                  json_integer_value(json_object_get(object, column->second)));
    else
        add_plain(table, value);
}

void objects_add_process(struct table *table, const json_t *report)
{
    const char *program = json_string_value(json_object_get(report, "program"));
    table_add(table, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(report, "pid")));
    table_add(table, "%s%s%s", program ? program : "-",
              json_is_true(json_object_get(report, "answers")) ? "" : " (does not answer)",
              json_is_true(json_object_get(report, "busy")) ? " (busy)" : "");
}

static void add_row(struct table *table, const struct view *view, const json_t *report, const json_t *object)
{
    objects_add_process(table, report);
    for (int i = 0; i < COLUMNS && view->columns[i].title; i++)
        add_value(table, &view->columns[i], object);
}

/* One row for each object, or for a process that did not answer. */
static void add_report(struct table *table, const struct view *view, const json_t *report)
{
    const json_t *list = json_object_get(report, view->name), *object;
    size_t i;
    if (view == views || !json_is_array(list))
        add_row(table, view, report, report);
    else
        json_array_foreach(list, i, object) add_row(table, view, report, object);
}

static void print_view(const json_t *reports, const struct view *view)
{
    struct table table = {.columns = 2};
    const json_t *report;
    size_t i;
    for (int column = 0; column < COLUMNS && view->columns[column].title; column++)
        table.columns++;
    table_add(&table, "PID");
    table_add(&table, "PROGRAM");
    for (size_t column = 2; column < table.columns; column++)
        table_add(&table, "%s", view->columns[column - 2].title);
    json_array_foreach(reports, i, report) add_report(&table, view, report);
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
    print_view(reports, find_view("qps"));
}

/* How many objects of each kind there are. */
static json_t *count_objects(const json_t *report)
{
    json_t *counts = json_object();
    for (int i = 0; i < COLUMNS && views->columns[i].title; i++) {
        const json_t *list = json_object_get(report, views->columns[i].key);
        if (json_is_array(list))
            json_object_set_new(counts, views->columns[i].key, json_integer((json_int_t)json_array_size(list)));
    }
    return counts;
}

/* The members that identify the process and its answer, and one list. */
static json_t *pick(const json_t *report, const struct view *view)
{
    static const char *const always[] = {"pid", "program", "answers", "busy", "devices"};
    json_t *picked = json_object();
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        json_object_set(picked, always[i], json_object_get(report, always[i]));
    if (view == views)
        json_object_set_new(picked, "objects", count_objects(report));
    else
        json_object_set(picked, view->name, json_object_get(report, view->name));
    return picked;
}

void objects_emit(const json_t *reports, const char *name)
{
    json_t *all = json_array(), *report;
    size_t i;
    json_array_foreach((json_t *)reports, i, report)
        json_array_append_new(all, name ? pick(report, find_view(name)) : json_incref(report));
    emit(all);
}
