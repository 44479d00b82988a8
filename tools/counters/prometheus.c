#include "counters/prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "counters/port.h"
#include "events/lines.h"

/* The label of a counter's parts, by its form. */
static const char *const part_labels[] = {
    [COUNTER_PACKETS] = "operation",     [COUNTER_NUMBER] = "operation", [COUNTER_FAULT] = "fault",
    [COUNTER_PACKET_REASONS] = "reason", [COUNTER_REASONS] = "reason",   [COUNTER_BY_PEERS] = "operation",
};

/* Backslash, quote and newline are escaped; what is no ASCII is left out, as programs may be named by any bytes. */
static void print_value(FILE *out, const char *text)
{
    for (; text && *text; text++)
        if (*text == '\\' || *text == '"')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text >= ' ' && *text < 127 ? *text : '?', out);
}

static void print_process(FILE *out, const json_t *report)
{
    fprintf(out, "{pid=\"%" JSON_INTEGER_FORMAT "\",program=\"", json_integer_value(json_object_get(report, "pid")));
    print_value(out, json_string_value(json_object_get(report, "program")));
    fputc('"', out);
}

/* The lines of a counter of one device. "device" is "" for strays. */
static void print_counter(FILE *out, const struct event_counter *counter, const json_t *report, const json_t *traffic)
{
    const json_t *value = json_object_get(traffic, counter->key);
    const char *part, *device = json_string_value(json_object_get(traffic, "device"));
    json_t *each;
    if (json_is_integer(value)) {
        fprintf(out, "softverbs_%s_total", counter->key);
        print_process(out, report);
        fprintf(out, ",device=\"%s\"} %" PRIu64 "\n", device ? device : "", port_total(value));
    }
    json_object_foreach((json_t *)value, part, each)
    {
        fprintf(out, "softverbs_%s_total", counter->key);
        print_process(out, report);
        fprintf(out, ",device=\"%s\",%s=\"", device ? device : "", part_labels[counter->form]);
        print_value(out, part);
        fprintf(out, "\"} %" PRIu64 "\n", port_total(each));
    }
}

static void print_counters(FILE *out, const struct event_counter *counter, const json_t *reports)
{
    const json_t *report, *device;
    size_t i, j;
    fprintf(out, "# HELP softverbs_%s_total %s\n# TYPE softverbs_%s_total counter\n", counter->key, counter->meaning,
            counter->key);
    json_array_foreach((json_t *)reports, i, report)
    {
        json_array_foreach(json_object_get(report, "traffic"), j, device) print_counter(out, counter, report, device);
        print_counter(out, counter, report, json_object_get(report, "strays"));
    }
}

/* Queue pairs of one device in one state. */
static unsigned count_pairs(const json_t *report, const char *device, const char *state)
{
    const json_t *qp;
    size_t i;
    unsigned count = 0;
    json_array_foreach(json_object_get(report, "qps"), i, qp)
    {
        const char *of = json_string_value(json_object_get(qp, "device"));
        const char *in = json_string_value(json_object_get(qp, "state"));
        count += of && in && !strcmp(of, device) && !strcmp(in, state);
    }
    return count;
}

static void print_pairs(FILE *out, const json_t *report, const char *device)
{
    for (unsigned state = 0; strcmp(event_state_word(state), "?"); state++) {
        unsigned count = count_pairs(report, device, event_state_word(state));
        if (!count)
            continue;
        fputs("softverbs_queue_pairs", out);
        print_process(out, report);
        fprintf(out, ",device=\"%s\",state=\"%s\"} %u\n", device, event_state_word(state), count);
    }
}

static void print_gauges(FILE *out, const json_t *reports)
{
    const json_t *report, *device;
    size_t i, j;
    fputs("# HELP softverbs_process_answers Whether the process could be asked.\n# TYPE softverbs_process_answers "
          "gauge\n",
          out);
    json_array_foreach((json_t *)reports, i, report)
    {
        fputs("softverbs_process_answers", out);
        print_process(out, report);
        fprintf(out, "} %d\n", json_is_true(json_object_get(report, "answers")));
    }
    fputs("# HELP softverbs_queue_pairs Queue pairs by their state.\n# TYPE softverbs_queue_pairs gauge\n", out);
    json_array_foreach((json_t *)reports, i, report) json_array_foreach(json_object_get(report, "traffic"), j, device)
    {
        const char *name = json_string_value(json_object_get(device, "device"));
        if (name)
            print_pairs(out, report, name);
    }
}

void prometheus_print(FILE *out, const json_t *reports)
{
    for (unsigned at = 0; at < event_counters_count; at++)
        if (event_counter_begins(at))
            print_counters(out, &event_counters[at], reports);
    print_gauges(out, reports);
}
