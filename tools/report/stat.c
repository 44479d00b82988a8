/* softverbs stat: what the live processes on this host have counted, as it changes or as it stands. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "counters/prometheus.h"
#include "events/lines.h"
#include "facts/read.h"
#include "meeting.h"
#include "objects.h"
#include "print/table.h"
#include "reports.h"

enum { LINES_A_PAGE = 20, TEXT = 512 };

/* The columns of the line each second: keys of events.def, with their widths. */
static const struct rate {
    const char *title, *key;
    int width;
    bool millions;
} rates[] = {
    {"sent/s", "sent", 7},
    {"rcvd/s", "received", 7},
    {"MBout/s", "bytes_sent", 7, true},
    {"MBin/s", "bytes_received", 7, true},
    {"repeat", "repeated", 6},
    {"tmouts", "timeouts", 6},
    {"naks", "naks_received", 5},
    {"rnrs", "rnrs_received", 5},
    {"cnps", "cnps_received", 4},
    {"drops", "dropped", 5},
    {"fault", "faults", 5},
};

enum { RATES = sizeof rates / sizeof *rates };

struct sample {
    json_int_t count[RATES];
};

/* A number, or the sum of an object of numbers. Nothing in a report is trusted. */
static json_int_t sum(const json_t *value)
{
    json_int_t total = json_integer_value(value);
    const char *key;
    json_t *each;
    json_object_foreach((json_t *)value, key, each) total += json_integer_value(each);
    return total;
}

static void add(struct sample *sample, const json_t *traffic, int sign)
{
    for (int i = 0; i < RATES; i++)
        sample->count[i] += sign * sum(json_object_get(traffic, rates[i].key));
}

static void add_process(struct sample *sample, const json_t *report, int sign)
{
    const json_t *device;
    size_t i;
    json_array_foreach(json_object_get(report, "traffic"), i, device) add(sample, device, sign);
    add(sample, json_object_get(report, "strays"), sign);
}

/* The report of the same process; NULL: there was none. */
static const json_t *find(const json_t *reports, const json_t *wanted)
{
    const json_t *report;
    size_t i;
    json_array_foreach(reports, i, report) if (json_equal(json_object_get(report, "pid"),
                                                          json_object_get(wanted, "pid"))) return report;
    return NULL;
}

/* The counts that have been added since. A process that did not answer this time, or the time before, adds nothing. */
static struct sample difference(const json_t *before, const json_t *now)
{
    struct sample sample = {0};
    const json_t *report;
    size_t i;
    json_array_foreach(now, i, report)
    {
        const json_t *old = find(before, report);
        if (!json_object_get(report, "traffic") || (old && !json_object_get(old, "traffic")))
            continue;
        add_process(&sample, report, 1);
        if (old)
            add_process(&sample, old, -1);
    }
    return sample;
}

/* --- a table of totals */

static void add_process_cells(struct table *table, const json_t *report)
{
    struct facts_process process;
    facts_read(&facts_of_process, report, &process);
    objects_add_process(table, &process);
}

/* "RC SEND_ONLY 5, RC ACKNOWLEDGE 5"; reasons likewise */
static void describe(const json_t *packets, char text[TEXT])
{
    const char *key;
    json_t *each;
    size_t used = 0;
    strcpy(text, "-");
    json_object_foreach((json_t *)packets, key, each) if (used < TEXT) used += (size_t)snprintf(
        text + used, TEXT - used, "%s%s %" JSON_INTEGER_FORMAT, used ? ", " : "", key, json_integer_value(each));
}

/* Returns whether each part of it is named, and not only their sum. Such columns are wide, and come last. */
static bool is_described(const struct event_counter *counter)
{
    return counter->form == COUNTER_PACKETS || counter->form == COUNTER_FAULT || counter->form == COUNTER_REASONS;
}

/* The next counter with a column, from there on; NULL: there is none. */
static const struct event_counter *next_column(unsigned *at, bool described)
{
    for (; *at < event_counters_count; (*at)++)
        if (*event_counters[*at].column && event_counter_begins(*at) && is_described(&event_counters[*at]) == described)
            return &event_counters[(*at)++];
    return NULL;
}

static void add_titles(struct table *table)
{
    const struct event_counter *counter;
    for (int described = false; described <= true; described++)
        for (unsigned at = 0; (counter = next_column(&at, described));)
            table_add(table, "%s", counter->column);
}

static void add_row(struct table *table, const json_t *report, const char *what, const json_t *traffic)
{
    char text[TEXT];
    const struct event_counter *counter;
    add_process_cells(table, report);
    table_add(table, "%s", what);
    for (unsigned at = 0; (counter = next_column(&at, false));)
        table_add(table, "%" JSON_INTEGER_FORMAT, sum(json_object_get(traffic, counter->key)));
    for (unsigned at = 0; (counter = next_column(&at, true));) {
        describe(json_object_get(traffic, counter->key), text);
        table_add(table, "%s", text);
    }
}

static size_t count_columns(void)
{
    size_t columns = 0;
    for (int described = false; described <= true; described++)
        for (unsigned at = 0; next_column(&at, described);)
            columns++;
    return columns;
}

/* --- one counter a line */

static void add_line(struct table *table, const json_t *report, const char *what, const char *counter, const char *part,
                     json_int_t value)
{
    add_process_cells(table, report);
    table_add(table, "%s", what);
    table_add(table, "%" JSON_INTEGER_FORMAT, value);
    table_add(table, "%s%s%s", counter, part ? " " : "", part ? part : "");
}

/* All that is a number, and each part of what is counted by operation, by kind or by the name of a reason. */
static void add_lines(struct table *table, const json_t *report, const char *what, const json_t *traffic)
{
    const char *counter, *part;
    json_t *value, *each;
    json_object_foreach((json_t *)traffic, counter, value)
    {
        if (json_is_integer(value))
            add_line(table, report, what, counter, NULL, json_integer_value(value));
        else if (strcmp(counter, "dropped") != 0) /* which stand by name among the reasons */
            json_object_foreach(value, part, each)
                add_line(table, report, what, counter, part, json_integer_value(each));
    }
}

/* --- of each device or queue pair */

/* One of add_row and add_lines. */
typedef void counts_adder(struct table *, const json_t *report, const char *what, const json_t *traffic);

static void add_devices(struct table *table, const json_t *report, counts_adder *add_counts)
{
    const json_t *device;
    size_t i;
    json_array_foreach(json_object_get(report, "traffic"), i, device)
    {
        const char *name = json_string_value(json_object_get(device, "device"));
        add_counts(table, report, name ? name : "-", device);
    }
    const json_t *strays = json_object_get(report, "strays");
    if (sum(json_object_get(strays, "received")) || sum(json_object_get(strays, "dropped")))
        add_counts(table, report, "strays", strays);
}

static void add_queue_pairs(struct table *table, const json_t *report, counts_adder *add_counts)
{
    const json_t *qp;
    size_t i;
    json_array_foreach(json_object_get(report, "qps"), i, qp)
    {
        char name[32];
        snprintf(name, sizeof name, "0x%llx", (unsigned long long)json_integer_value(json_object_get(qp, "number")));
        add_counts(table, report, name, json_object_get(qp, "traffic"));
    }
}

/* A process that is stopped, of another user or making objects right now: without a row it would look idle. */
static void add_untold(struct table *table, const json_t *report)
{
    add_process_cells(table, report);
    for (size_t column = 2; column < table->columns; column++)
        table_add(table, "-");
}

static void add_processes(struct table *table, const json_t *reports, bool queue_pairs, counts_adder *add_counts)
{
    const json_t *report;
    size_t i;
    json_array_foreach(reports, i, report)
    {
        if (!json_object_get(report, "traffic"))
            add_untold(table, report);
        else if (queue_pairs)
            add_queue_pairs(table, report, add_counts);
        else
            add_devices(table, report, add_counts);
    }
}

static void print_totals(const json_t *reports, bool queue_pairs)
{
    struct table table = {.columns = count_columns() + 3, .wraps = true};
    table_add(&table, "PID");
    table_add(&table, "PROGRAM");
    table_add(&table, queue_pairs ? "QP" : "DEVICE");
    add_titles(&table);
    add_processes(&table, reports, queue_pairs, add_row);
    table_print(&table, stdout);
}

/* Those of calls, of adverse behaviours and of librdmacm are no device's. */
static void add_of_processes(struct table *table, const json_t *reports)
{
    const json_t *report;
    size_t i;
    json_array_foreach(reports, i, report)
    {
        add_lines(table, report, "calls", json_object_get(report, "calls"));
        add_lines(table, report, "adverse", json_object_get(report, "adverse"));
        add_lines(table, report, "connections", json_object_get(report, "messages"));
    }
}

static void print_lines(const json_t *reports, bool queue_pairs)
{
    struct table table = {.columns = 5};
    table_add(&table, "PID");
    table_add(&table, "PROGRAM");
    table_add(&table, queue_pairs ? "QP" : "DEVICE");
    table_add(&table, "COUNT");
    table_add(&table, "COUNTER");
    add_processes(&table, reports, queue_pairs, add_lines);
    if (!queue_pairs)
        add_of_processes(&table, reports);
    table_print(&table, stdout);
}

/* --- as it changes */

/* All that is counted of a process, without its objects. */
static void print_json(const json_t *reports)
{
    static const char *const keys[] = {"pid",    "program", "answers", "busy",    "traffic",
                                       "strays", "calls",   "adverse", "messages"};
    json_t *all = json_array(), *report, *qp;
    size_t i, j;
    json_array_foreach((json_t *)reports, i, report)
    {
        json_t *process = json_object(), *list = json_object_get(report, "qps"), *qps = json_array();
        for (size_t key = 0; key < sizeof keys / sizeof *keys; key++)
            json_object_set(process, keys[key], json_object_get(report, keys[key]));
        json_array_foreach(list, j, qp)
            json_array_append_new(qps, json_pack("{s:O?, s:O?}", "number", json_object_get(qp, "number"), "traffic",
                                                 json_object_get(qp, "traffic")));
        if (list)
            json_object_set(process, "qps", qps);
        json_decref(qps);
        json_array_append_new(all, process);
    }
    json_dumpf(all, stdout, JSON_COMPACT);
    puts("");
    json_decref(all);
}

static void print_rates(const json_t *before, const json_t *now, unsigned long number)
{
    struct sample sample = difference(before, now);
    if (number % LINES_A_PAGE == 0) {
        fputs("procs", stdout);
        for (int i = 0; i < RATES; i++)
            printf(" %*s", rates[i].width, rates[i].title);
        puts("");
    }
    printf("%5zu", json_array_size(now));
    for (int i = 0; i < RATES; i++)
        if (rates[i].millions)
            printf(" %*.1f", rates[i].width, (double)sample.count[i] / 1e6);
        else
            printf(" %*lld", rates[i].width, (long long)sample.count[i]);
    puts("");
}

static void wait_until(struct timespec *time)
{
    time->tv_sec++;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, NULL) == EINTR)
        ;
}

/* Until the reader has gone, or the output can't be written. */
static int watch(const char *directory, bool as_json, char *why, size_t why_size)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    json_t *before = reports_collect(directory, why, why_size), *now = NULL;
    for (unsigned long number = 0; before; number++, before = now) {
        if (as_json)
            print_json(before);
        wait_until(&time);
        now = reports_collect(directory, why, why_size);
        if (now && !as_json)
            print_rates(before, now, number);
        json_decref(before);
        if (!output_flush()) {
            json_decref(now);
            return EXIT_OK;
        }
    }
    complain("%s", why);
    return EXIT_NEGATIVE;
}

static int print_prometheus(const char *directory)
{
    char why[512];
    json_t *reports = reports_collect(directory, why, sizeof why);
    if (reports)
        prometheus_print(stdout, reports);
    else
        complain("%s", why);
    json_decref(reports);
    return reports ? EXIT_OK : EXIT_NEGATIVE;
}

static int once(const char *directory, bool as_json, bool queue_pairs, bool lines)
{
    char why[512];
    json_t *reports = reports_collect(directory, why, sizeof why);
    if (!reports)
        complain("%s", why);
    else if (as_json)
        print_json(reports);
    else if (!json_array_size(reports))
        puts(MEETING_NONE);
    else
        (lines ? print_lines : print_totals)(reports, queue_pairs);
    json_decref(reports);
    return reports ? EXIT_OK : EXIT_NEGATIVE;
}

/* 0 to 65535, or -1. */
static long port_number(const char *text)
{
    char *end;
    long port = strtol(text, &end, 10);
    return *end || end == text || port < 0 || port > 65535 ? -1 : port;
}

static int run_stat(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"once", no_argument, NULL, 'o'},         {"qps", no_argument, NULL, 'q'},
        {"lines", no_argument, NULL, 'l'},        {"prometheus", no_argument, NULL, 'p'},
        {"listen", required_argument, NULL, 'L'}, MEETING_OPTIONS};
    struct meeting meeting = {0};
    char why[512];
    bool only_once = false, queue_pairs = false, lines = false, prometheus = false;
    const char *port = NULL;
    int option;
    while ((option = meeting_option(command, argc, argv, options, &meeting)) != -1) {
        only_once |= option == 'o' || option == 'q' || option == 'l';
        lines |= option == 'l';
        queue_pairs |= option == 'q';
        prometheus |= option == 'p';
        port = option == 'L' ? optarg : port;
    }
    if (optind < argc)
        return command_misused(command, "It takes no argument \"%s\".", argv[optind]);
    if (port && port_number(port) < 0)
        return command_misused(command, "\"%s\" is no port.", port);
    int status = meeting_find(command, &meeting);
    return status       ? status
           : port       ? prometheus_serve(meeting.directory, (unsigned)port_number(port))
           : prometheus ? print_prometheus(meeting.directory)
           : only_once  ? once(meeting.directory, meeting.as_json, queue_pairs, lines)
                        : watch(meeting.directory, meeting.as_json, why, sizeof why);
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
