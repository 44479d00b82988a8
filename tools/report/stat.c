/* softverbs stat: what the live processes on this host have counted, as changes or as totals. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text/text.h"
#include "command.h"
#include "counters/port.h"
#include "counters/prometheus.h"
#include "events/lines.h"
#include "meeting.h"
#include "objects.h"
#include "print/table.h"
#include "top/collector.h"

enum { LINES_A_PAGE = 20, TEXT = 512, COLUMNS_MOST = 64 };

/* --- a table of totals */

/* Returns whether the column names each part of the counter, not only their sum. Such columns are wide, and last. */
static bool is_described(const struct event_counter *counter)
{
    return counter->form == COUNTER_PACKETS || counter->form == COUNTER_FAULT || counter->form == COUNTER_REASONS;
}

/* The counters with a column, in the order of the columns. */
static size_t find_columns(const struct event_counter *columns[COLUMNS_MOST])
{
    size_t count = 0;
    for (int described = false; described <= true; described++)
        for (unsigned at = 0; at < event_counters_count && count < COLUMNS_MOST; at++)
            if (*event_counters[at].column && event_counter_begins(at) &&
                is_described(&event_counters[at]) == described)
                columns[count++] = &event_counters[at];
    return count;
}

static void add_row(struct table *table, const struct facts_process *process, const char *what, const json_t *traffic)
{
    char text[TEXT];
    const struct event_counter *columns[COLUMNS_MOST];
    size_t count = find_columns(columns);
    objects_add_process(table, process);
    table_add(table, "%s", what);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(traffic, columns[i]->key);
        port_list(value, true, text, sizeof text);
        if (is_described(columns[i]))
            table_add(table, "%s", *text ? text : "-");
        else
            table_add(table, value ? "%" PRIu64 : "-", port_total(value));
    }
}

/* --- one counter a line */

static void add_line(struct table *table, const struct facts_process *process, const char *what, const char *counter,
                     const char *part, json_int_t value)
{
    objects_add_process(table, process);
    table_add(table, "%s", what);
    table_add(table, "%" JSON_INTEGER_FORMAT, value);
    table_add(table, "%s%s%s", counter, part ? " " : "", part ? part : "");
}

/* Adds each counter that is a number, and each part of a counter by operation, by kind or by the name of a reason. */
static void add_lines(struct table *table, const struct facts_process *process, const char *what, const json_t *traffic)
{
    const char *counter, *part;
    json_t *value, *each;
    json_object_foreach ((json_t *)traffic, counter, value) {
        if (json_is_integer(value))
            add_line(table, process, what, counter, NULL, json_integer_value(value));
        else if (strcmp(counter, "dropped") != 0) /* drops have names among the reasons */
            json_object_foreach (value, part, each)
                add_line(table, process, what, counter, part, json_integer_value(each));
    }
}

/* --- of each device or queue pair */

/* The type of add_row and add_lines. */
typedef void counts_adder(struct table *, const struct facts_process *process, const char *what, const json_t *traffic);

static void add_devices(struct table *table, const struct facts_process *process, counts_adder *add_counts)
{
    const json_t *devices = facts_json(&process->traffic), *strays = facts_json(&process->strays);
    for (size_t i = 0; i < json_array_size(devices); i++)
        add_counts(table, process, port_device(json_array_get(devices, i)), json_array_get(devices, i));
    if (seen_count(&process->strays, EVENT_PACKET_RECEIVED) || seen_count(&process->strays, EVENT_PACKET_DROPPED))
        add_counts(table, process, "strays", strays);
}

static void add_queue_pairs(struct table *table, const struct seen_process *process, counts_adder *add_counts)
{
    for (size_t i = 0; i < process->qp_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "0x%llx", (unsigned long long)process->qps[i].number.value);
        add_counts(table, &process->own, name, facts_json(&process->qps[i].traffic));
    }
}

/* Adds a row for a process that is stopped, is another user's or makes objects: without a row it would look idle. */
static void add_untold(struct table *table, const struct facts_process *process)
{
    objects_add_process(table, process);
    for (size_t column = 2; column < table->columns; column++)
        table_add(table, "-");
}

static void add_processes(struct table *table, const struct seen *seen, bool queue_pairs, counts_adder *add_counts)
{
    for (size_t i = 0; i < seen->count; i++) {
        const struct seen_process *process = &seen->processes[i];
        if (!process->own.traffic.of)
            add_untold(table, &process->own);
        else if (queue_pairs)
            add_queue_pairs(table, process, add_counts);
        else
            add_devices(table, &process->own, add_counts);
    }
}

static void print_totals(const struct seen *seen, bool queue_pairs)
{
    const struct event_counter *columns[COLUMNS_MOST];
    struct table table = {.columns = find_columns(columns) + 3, .wraps = true};
    table_add_row(&table, "PID", "PROGRAM", queue_pairs ? "QP" : "DEVICE");
    for (size_t i = 0; i + 3 < table.columns; i++)
        table_add(&table, "%s", columns[i]->column);
    add_processes(&table, seen, queue_pairs, add_row);
    table_print(&table, stdout);
}

/* Adds the counts of calls, of adverse behaviours and of librdmacm, which belong to no device. */
static void add_of_processes(struct table *table, const struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        const struct facts_process *process = &seen->processes[i].own;
        add_lines(table, process, "calls", facts_json(&process->calls));
        add_lines(table, process, "adverse", facts_json(&process->adverse));
        add_lines(table, process, "connections", facts_json(&process->messages));
    }
}

static void print_lines(const struct seen *seen, bool queue_pairs)
{
    struct table table = {.columns = 5};
    table_add_row(&table, "PID", "PROGRAM", queue_pairs ? "QP" : "DEVICE", "COUNT", "COUNTER");
    add_processes(&table, seen, queue_pairs, add_lines);
    if (!queue_pairs)
        add_of_processes(&table, seen);
    table_print(&table, stdout);
}

/* --- as it changes */

#define AT(kind, name) offsetof(struct facts_##kind, name)

/* The number and the traffic of a queue pair; the traffic is null if the queue pair was busy. */
static json_t *pick_pair(const json_t *qp)
{
    const struct facts_kind *kind = &facts_of_qp;
    return json_pack("{s:O?, s:O?}", facts_at(kind, AT(qp, number))->name, facts_member(kind, qp, AT(qp, number)),
                     facts_at(kind, AT(qp, traffic))->name, facts_member(kind, qp, AT(qp, traffic)));
}

/* Prints all counts of each process, without its objects. */
static void print_json(const json_t *reports)
{
    static const size_t facts[] = {AT(process, pid),   AT(process, program), AT(process, answers),
                                   AT(process, busy),  AT(process, traffic), AT(process, strays),
                                   AT(process, calls), AT(process, adverse), AT(process, messages)};
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(reports); i++) {
        const json_t *report = json_array_get(reports, i);
        json_t *process = facts_pick(&facts_of_process, report, facts, sizeof facts / sizeof *facts);
        const json_t *list = facts_member(&facts_of_process, report, AT(process, qps));
        json_t *qps = list ? json_array() : NULL;
        for (size_t k = 0; k < json_array_size(list); k++)
            json_array_append_new(qps, pick_pair(json_array_get(list, k)));
        if (qps)
            json_object_set_new(process, facts_at(&facts_of_process, AT(process, qps))->name, qps);
        json_array_append_new(all, process);
    }
    json_dumpf(all, stdout, JSON_COMPACT);
    puts("");
    json_decref(all);
}

/* Prints what was added between two looks; bytes in millions. */
static void print_rates(const struct top_look *before, const struct top_look *now, unsigned long number)
{
    const struct top_column *columns = top_stat.columns;
    if (number % LINES_A_PAGE == 0) {
        fputs("procs", stdout);
        for (size_t i = 0; i < top_stat.count; i++)
            printf(" %*s", (int)columns[i].width, columns[i].title);
        puts("");
    }
    printf("%5zu", now->seen.count);
    for (size_t i = 0; i < top_stat.count; i++) {
        bool bytes = columns[i].counter >= EVENT_KINDS;
        printf(" %*.*f", (int)columns[i].width, bytes, top_grown(before, now, &columns[i]) / (bytes ? 1e6 : 1));
    }
    puts("");
}

static void wait_until(struct timespec *time)
{
    time->tv_sec++;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, NULL) == EINTR)
        ;
}

/* Prints the changes each second until the reader has gone, or the output can't be written. */
static int watch(const char *directory, bool as_json)
{
    char why[COLLECTOR_WHY];
    struct timespec time;
    struct top_look before = {0}, now;
    bool found = collector_look(directory, &before, why), read = true;
    clock_gettime(CLOCK_MONOTONIC, &time);
    for (unsigned long number = 0; found && read; number++) {
        if (as_json)
            print_json(before.reports);
        wait_until(&time);
        found = collector_look(directory, &now, why);
        if (found && !as_json)
            print_rates(&before, &now, number);
        top_look_end(&before);
        before = now;
        read = output_flush();
    }
    top_look_end(&before);
    if (read)
        complain("%s", why);
    return read ? EXIT_NEGATIVE : EXIT_OK;
}

/* The user's choice of what is printed once. */
struct choice {
    bool as_json, prometheus, queue_pairs, lines;
};

static void print(const struct top_look *look, const struct choice *choice)
{
    if (choice->prometheus)
        prometheus_print(stdout, look->reports);
    else if (choice->as_json)
        print_json(look->reports);
    else if (!look->seen.count)
        puts(MEETING_NONE);
    else
        (choice->lines ? print_lines : print_totals)(&look->seen, choice->queue_pairs);
}

static int once(const char *directory, const struct choice *choice)
{
    char why[COLLECTOR_WHY];
    struct top_look look;
    bool found = collector_look(directory, &look, why);
    if (found)
        print(&look, choice);
    else
        complain("%s", why);
    top_look_end(&look);
    return found ? EXIT_OK : EXIT_NEGATIVE;
}

static int run_stat(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("once", 'o'),       OPTION("qps", 'q'),    OPTION("lines", 'l'),
                                            OPTION("prometheus", 'p'), VALUED("listen", 'L'), MEETING_OPTIONS};
    struct meeting meeting = {0};
    struct choice choice = {0};
    bool only_once = false;
    const char *port = NULL;
    uint64_t port_number;
    int option;
    while ((option = meeting_option(command, argc, argv, options, &meeting)) != -1) {
        only_once |= strchr("oqlp", option) != NULL;
        choice.lines |= option == 'l';
        choice.queue_pairs |= option == 'q';
        choice.prometheus |= option == 'p';
        port = option == 'L' ? optarg : port;
    }
    choice.as_json = meeting.as_json;
    if (optind < argc)
        return command_misused(command, "It takes no argument \"%s\".", argv[optind]);
    if (port && !text_number(port, 0, UINT16_MAX, &port_number))
        return command_misused(command, "\"%s\" is no port.", port);
    int status = meeting_find(command, &meeting);
    return status      ? status
           : port      ? prometheus_serve(meeting.directory, (unsigned)port_number)
           : only_once ? once(meeting.directory, &choice)
                       : watch(meeting.directory, choice.as_json);
}

const struct command stat_command = {
    .name = "stat",
    .arguments = "[OPTIONS]",
    .summary = "Show what the live processes send, receive, repeat and drop",
    .help = "  --once            print the counters until now, by device, and end\n"
            "  --qps             the same by queue pair\n"
            "  --lines           the same, one counter a line\n"
            "  --prometheus      print the counters until now in Prometheus' format\n"
            "  --listen PORT     serve them at http://127.0.0.1:PORT/metrics, until Ctrl-C\n"
            "  --json            print a line of JSON each second, or one with --once: a list\n"
            "                    with one object for each process (docs/reference/json.md)\n" MEETING_HELP_DIR "\n"
            "Without --once it prints a line each second: the sums of what all processes\n"
            "have added since the line before. Packets are frames of the links: within the\n"
            "host one may carry more than the path MTU. \"strays\" are packets that were for no\n"
            "queue pair. \"softverbs explain NAME\" explains a reason. For the counters of a\n"
            "process that has ended use softverbs run --counters FILE. A process that is\n"
            "stopped, or is another user's, does not answer: its counters are not known.\n",
    .run = run_stat,
};
