#include "counters/prometheus.h"

#include <inttypes.h>
#include <string.h>

#include "counters/port.h"
#include "events/lines.h"
#include "facts/seen.h"

/* The label of a counter's parts, by its form. */
static const char *const part_labels[] = {
    [COUNTER_PACKETS] = "operation",     [COUNTER_NUMBER] = "operation", [COUNTER_FAULT] = "fault",
    [COUNTER_PACKET_REASONS] = "reason", [COUNTER_REASONS] = "reason",   [COUNTER_BY_PEERS] = "operation",
};

/* Escapes backslash and quote; other bytes than printable ASCII become '?', as programs' names may have any bytes. */
static void print_value(FILE *out, const char *text)
{
    for (; text && *text; text++)
        if (*text == '\\' || *text == '"')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text >= ' ' && *text < 127 ? *text : '?', out);
}

/* `device`: "" for strays; NULL: no device is named. */
static void print_process(FILE *out, const struct seen_process *process, const char *device)
{
    fprintf(out, "{pid=\"%" PRIu64 "\",program=\"", process->own.pid.value);
    print_value(out, process->own.program);
    fputs(device ? "\",device=\"" : "", out);
    print_value(out, device);
    fputc('"', out);
}

/* The lines of a counter of one device. */
static void print_counter(FILE *out, const struct event_counter *counter, const struct seen_process *process,
                          const json_t *traffic)
{
    const json_t *value = json_object_get(traffic, counter->key);
    const char *part, *device = port_device(traffic);
    json_t *each;
    if (json_is_integer(value)) {
        fprintf(out, "softverbs_%s_total", counter->key);
        print_process(out, process, device);
        fprintf(out, "} %" PRIu64 "\n", port_total(value));
    }
    json_object_foreach ((json_t *)value, part, each) {
        fprintf(out, "softverbs_%s_total", counter->key);
        print_process(out, process, device);
        fprintf(out, ",%s=\"", part_labels[counter->form]);
        print_value(out, part);
        fprintf(out, "\"} %" PRIu64 "\n", port_total(each));
    }
}

static void print_counters(FILE *out, const struct event_counter *counter, const struct seen *seen)
{
    json_t *device;
    size_t k;
    fprintf(out, "# HELP softverbs_%s_total %s\n# TYPE softverbs_%s_total counter\n", counter->key, counter->meaning,
            counter->key);
    for (size_t i = 0; i < seen->count; i++) {
        const struct seen_process *process = &seen->processes[i];
        json_array_foreach (facts_json(&process->own.traffic), k, device)
            print_counter(out, counter, process, device);
        print_counter(out, counter, process, facts_json(&process->own.strays));
    }
}

/* Queue pairs of one device in one state. */
static unsigned count_pairs(const struct seen_process *process, const char *device, const char *state)
{
    unsigned count = 0;
    for (size_t i = 0; i < process->qp_count; i++)
        count +=
            !strcmp(facts_text(process->qps[i].device), device) && !strcmp(facts_text(process->qps[i].state), state);
    return count;
}

static void print_pairs(FILE *out, const struct seen_process *process, const char *device)
{
    for (unsigned state = 0; strcmp(event_state_word(state), "?"); state++) {
        unsigned count = count_pairs(process, device, event_state_word(state));
        if (!count)
            continue;
        fputs("softverbs_queue_pairs", out);
        print_process(out, process, device);
        fprintf(out, ",state=\"%s\"} %u\n", event_state_word(state), count);
    }
}

static void print_gauges(FILE *out, const struct seen *seen)
{
    json_t *device;
    size_t k;
    fputs("# HELP softverbs_process_answers Whether the process could be asked.\n# TYPE softverbs_process_answers "
          "gauge\n",
          out);
    for (size_t i = 0; i < seen->count; i++) {
        fputs("softverbs_process_answers", out);
        print_process(out, &seen->processes[i], NULL);
        fprintf(out, "} %d\n", facts_is(&seen->processes[i].own.answers));
    }
    fputs("# HELP softverbs_queue_pairs Queue pairs by their state.\n# TYPE softverbs_queue_pairs gauge\n", out);
    for (size_t i = 0; i < seen->count; i++)
        json_array_foreach (facts_json(&seen->processes[i].own.traffic), k, device)
            print_pairs(out, &seen->processes[i], port_device(device));
}

void prometheus_print(FILE *out, const json_t *reports)
{
    struct seen seen = seen_begin(reports);
    for (unsigned at = 0; at < event_counters_count; at++)
        if (event_counter_begins(at))
            print_counters(out, &event_counters[at], &seen);
    print_gauges(out, &seen);
    seen_end(&seen);
}
