#include "report/counts_report.h"

#include "diag/diag.h"
#include "events/call_counts.h"
#include "events/lines.h"
#include "wire/op.h"

enum { CNP = SERVICE_CNP << 5 | 1 };

/* The first numbers of two ranges of diag.def: the requester's reasons say why our own work ended in an error, the
 * responder's why it refused a peer's request. */
enum { REQUESTER = 100, RESPONDER = 200 };

/* The counts that one object of a report has: of a queue pair, of a device or of the strays. */
struct reported {
    const struct counts_total *total;
    const uint64_t *by_peers; /* counts that peers make; NULL except for the strays */
};

/* "name":5 after the separator, which is a comma from then on. */
static void report_part(FILE *out, const char **separator, const char *name, uint64_t value)
{
    fprintf(out, "%s\"%s\":%llu", *separator, name, (unsigned long long)value);
    *separator = ",";
}

/* {"RC SEND_ONLY":5,...}: the number of packets of each operation; CNPs have a separate number. */
static void report_packets(FILE *out, const struct counts_total *total, enum event event)
{
    const char *separator = "";
    enum event cnp = event == EVENT_PACKET_SENT ? EVENT_CNP_SENT : EVENT_CNP_RECEIVED;
    fputs("{", out);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        uint64_t count = total->packets[event][opcode];
        if (opcode == CNP)
            count += counts_number(&total->rest, cnp);
        if (count && op_find((uint8_t)opcode))
            report_part(out, &separator, op_table[opcode].name, count);
    }
    if (total->rest.packets[event][0])
        report_part(out, &separator, "ETHERNET", total->rest.packets[event][0]);
    fputs("}", out);
}

/* Writes counts of dropped and refused packets by the numbers of their reasons, without the requester's. */
static void report_dropped(FILE *out, const struct counts *counts)
{
    const char *separator = "";
    char number[16];
    fputs("{", out);
    for (unsigned place = 0; place < COUNTS_REASONS; place++)
        if (counts->reasons[place] && (counts_reason(place) < REQUESTER || counts_reason(place) >= RESPONDER)) {
            snprintf(number, sizeof number, "%u", counts_reason(place));
            report_part(out, &separator, number, counts->reasons[place]);
        }
    fputs("}", out);
}

static void report_reasons(FILE *out, const struct counts *counts)
{
    const char *separator = "";
    fputs("{", out);
    for (unsigned place = 0; place < COUNTS_REASONS; place++) {
        const char *name = reason_name(counts_reason(place));
        if (counts->reasons[place])
            report_part(out, &separator, name ? name : "OTHER", counts->reasons[place]);
    }
    fputs("}", out);
}

static uint64_t number_of(const struct reported *reported, const struct event_counter *counter)
{
    const struct counts *counts = &reported->total->rest;
    if (counter->form == COUNTER_BY_PEERS)
        return reported->by_peers[counter->index];
    return counter->form == COUNTER_SUM ? counts->sums[counter->index] : counts_number(counts, counter->index);
}

/* The number of a key, or its parts as an object; `at` is the first of them. */
static void report_numbers(FILE *out, const struct reported *reported, unsigned at)
{
    const char *separator = "";
    if (!*event_counters[at].part) {
        fprintf(out, "%llu", (unsigned long long)number_of(reported, &event_counters[at]));
        return;
    }
    fputs("{", out);
    do
        if (number_of(reported, &event_counters[at]) || event_counters[at].form != COUNTER_FAULT)
            report_part(out, &separator, event_counters[at].part, number_of(reported, &event_counters[at]));
    while (++at < event_counters_count && !event_counter_begins(at));
    fputs("}", out);
}

static void report_counter(FILE *out, const struct reported *reported, unsigned at)
{
    switch (event_counters[at].form) {
    case COUNTER_PACKETS:
        return report_packets(out, reported->total, event_counters[at].index);
    case COUNTER_PACKET_REASONS:
        return report_dropped(out, &reported->total->rest);
    case COUNTER_REASONS:
        return report_reasons(out, &reported->total->rest);
    default:
        return report_numbers(out, reported, at);
    }
}

void counts_report(FILE *out, const struct counts_total *total, const uint64_t *by_peers)
{
    const struct reported reported = {total, by_peers};
    const char *separator = "";
    for (unsigned at = 0; at < event_counters_count; at++) {
        if (!event_counter_begins(at) || (event_counters[at].form == COUNTER_BY_PEERS && !by_peers))
            continue;
        fprintf(out, "%s\"%s\":", separator, event_counters[at].key);
        report_counter(out, &reported, at);
        separator = ",";
    }
}

/* --- calls */

struct refused {
    FILE *out;
    enum event event;
    const char *separator;
};

static void report_refused(unsigned reason, const char *name, const char *sentence, void *context)
{
    struct refused *refused = context;
    uint64_t count = call_count_refused(refused->event, reason);
    if (count)
        report_part(refused->out, &refused->separator, name, count);
}

static void report_refusals(FILE *out, enum event event)
{
    struct refused refused = {out, event, ""};
    fprintf(out, "\"%s\":{", event_lines[event].key);
    reason_each(report_refused, &refused);
    fputs("},", out);
}

void counts_report_calls(FILE *out)
{
    const char *separator = "";
    for (enum event event = EVENTS_BEFORE_REFUSALS; event < EVENTS_BEFORE_SCRIPTED; event++)
        report_refusals(out, event);
    fprintf(out, "\"%s\":{", event_lines[EVENTS_BEFORE_SCRIPTED].key);
    for (enum event event = EVENTS_BEFORE_SCRIPTED; event < EVENTS_BEFORE_MESSAGES; event++)
        if (call_count_scripted(event))
            report_part(out, &separator, event_lines[event].part, call_count_scripted(event));
    fputs("}", out);
}
