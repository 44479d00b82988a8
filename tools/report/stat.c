/* softverbs stat: what the live processes on this host have counted, as it changes or as it stands. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "command.h"
#include "counters/port.h"
#include "counters/prometheus.h"
#include "events/lines.h"
#include "facts/seen.h"
#include "meeting.h"
#include "objects.h"
#include "print/table.h"
#include "reports.h"

enum { LINES_A_PAGE = 20, TEXT = 512 };

/* The columns of the line each second: events, or sums in millions, with their widths. */
static const struct rate {
    const char *title;
    int width;
    enum event event;
    enum event_sum sum; /* EVENT_SUM_NONE: it counts the event */
} rates[] = {
    {"sent/s", 7, EVENT_PACKET_SENT, EVENT_SUM_NONE},
    {"rcvd/s", 7, EVENT_PACKET_RECEIVED, EVENT_SUM_NONE},
    {"MBout/s", 7, 0, EVENT_SUM_BYTES_SENT},
    {"MBin/s", 7, 0, EVENT_SUM_BYTES_RECEIVED},
    {"repeat", 6, EVENT_RETRANSMITTED, EVENT_SUM_NONE},
    {"tmouts", 6, EVENT_ACK_TIMEOUT, EVENT_SUM_NONE},
    {"naks", 5, EVENT_NAK_RECEIVED, EVENT_SUM_NONE},
    {"rnrs", 5, EVENT_RNR_RECEIVED, EVENT_SUM_NONE},
    {"cnps", 4, EVENT_CNP_RECEIVED, EVENT_SUM_NONE},
    {"drops", 5, EVENT_PACKET_DROPPED, EVENT_SUM_NONE},
    {"fault", 5, EVENT_FRAME_LOST, EVENT_SUM_NONE},
};

enum { RATES = sizeof rates / sizeof *rates };

struct sample {
    int64_t count[RATES];
};

static void add(struct sample *sample, const json_t *traffic, int sign)
{
    const struct fact_inner counts = {.of = traffic};
    for (int i = 0; i < RATES; i++)
        sample->count[i] += sign * (int64_t)(rates[i].sum == EVENT_SUM_NONE ? seen_count(&counts, rates[i].event)
                                                                            : seen_sum(&counts, rates[i].sum));
}

static void add_process(struct sample *sample, const struct seen_process *process, int sign)
{
    const json_t *devices = facts_json(&process->own.traffic);
    for (size_t i = 0; i < json_array_size(devices); i++)
        add(sample, json_array_get(devices, i), sign);
    add(sample, facts_json(&process->own.strays), sign);
}

/* The counts that have been added since. A process that did not answer this time, or the time before, adds nothing. */
static struct sample difference(const struct seen *before, const struct seen *now)
{
    struct sample sample = {0};
    for (size_t i = 0; i < now->count; i++) {
        const struct seen_process *process = &now->processes[i], *old = seen_find(before, process->own.pid.value);
        if (!process->own.traffic.of || (old && !old->own.traffic.of))
            continue;
        add_process(&sample, process, 1);
        if (old)
            add_process(&sample, old, -1);
    }
    return sample;
}

/* --- a table of totals */

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

static void add_row(struct table *table, const struct facts_process *process, const char *what, const json_t *traffic)
{
    char text[TEXT];
    const struct event_counter *counter;
    objects_add_process(table, process);
    table_add(table, "%s", what);
    for (unsigned at = 0; (counter = next_column(&at, false));)
        table_add(table, "%" JSON_INTEGER_FORMAT, (json_int_t)port_total(json_object_get(traffic, counter->key)));
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

static void add_line(struct table *table, const struct facts_process *process, const char *what, const char *counter,
                     const char *part, json_int_t value)
{
    objects_add_process(table, process);
    table_add(table, "%s", what);
    table_add(table, "%" JSON_INTEGER_FORMAT, value);
    table_add(table, "%s%s%s", counter, part ? " " : "", part ? part : "");
}

/* All that is a number, and each part of what is counted by operation, by kind or by the name of a reason. */
static void add_lines(struct table *table, const struct facts_process *process, const char *what, const json_t *traffic)
{
    const char *counter, *part;
    json_t *value, *each;
    json_object_foreach((json_t *)traffic, counter, value)
    {
        if (json_is_integer(value))
            add_line(table, process, what, counter, NULL, json_integer_value(value));
        else if (strcmp(counter, "dropped") != 0) /* which stand by name among the reasons */
            json_object_foreach(value, part, each)
                add_line(table, process, what, counter, part, json_integer_value(each));
    }
}

/* --- of each device or queue pair */

/* One of add_row and add_lines. */
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

/* A process that is stopped, of another user or making objects right now: without a row it would look idle. */
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
    struct table table = {.columns = count_columns() + 3, .wraps = true};
    table_add(&table, "PID");
    table_add(&table, "PROGRAM");
    table_add(&table, queue_pairs ? "QP" : "DEVICE");
    add_titles(&table);
    add_processes(&table, seen, queue_pairs, add_row);
    table_print(&table, stdout);
}

/* Those of calls, of adverse behaviours and of librdmacm are no device's. */
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
    table_add(&table, "PID");
    table_add(&table, "PROGRAM");
    table_add(&table, queue_pairs ? "QP" : "DEVICE");
    table_add(&table, "COUNT");
    table_add(&table, "COUNTER");
    add_processes(&table, seen, queue_pairs, add_lines);
    if (!queue_pairs)
        add_of_processes(&table, seen);
    table_print(&table, stdout);
}

/* --- as it changes */

#define AT(kind, name) offsetof(struct facts_##kind, name)

/* The traffic is null where the queue pair was busy. */
static json_t *pick_pair(const json_t *qp)
{
    const struct facts_kind *kind = &facts_of_qp;
    return json_pack("{s:O?, s:O?}", facts_at(kind, AT(qp, number))->name, facts_member(kind, qp, AT(qp, number)),
                     facts_at(kind, AT(qp, traffic))->name, facts_member(kind, qp, AT(qp, traffic)));
}

/* All that is counted of a process, without its objects. */
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

static void print_rates(const json_t *before, const json_t *now, unsigned long number)
{
    struct seen first = seen_begin(before), second = seen_begin(now);
    struct sample sample = difference(&first, &second);
    seen_end(&first);
    seen_end(&second);
    if (number % LINES_A_PAGE == 0) {
        fputs("procs", stdout);
        for (int i = 0; i < RATES; i++)
            printf(" %*s", rates[i].width, rates[i].title);
        puts("");
    }
    printf("%5zu", json_array_size(now));
    for (int i = 0; i < RATES; i++)
        if (rates[i].sum != EVENT_SUM_NONE)
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
    else {
        struct seen seen = seen_begin(reports);
        (lines ? print_lines : print_totals)(&seen, queue_pairs);
        seen_end(&seen);
    }
    json_decref(reports);
    return reports ? EXIT_OK : EXIT_NEGATIVE;
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
    uint64_t port_number;
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
    if (port && !text_number(port, 0, UINT16_MAX, &port_number))
        return command_misused(command, "\"%s\" is no port.", port);
    int status = meeting_find(command, &meeting);
    return status       ? status
           : port       ? prometheus_serve(meeting.directory, (unsigned)port_number)
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
