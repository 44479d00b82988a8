#include "report/traffic_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/settings.h"
#include "diag/clean.h"
#include "diag/log.h"
#include "diag/output.h"
#include "events/lines.h"
#include "gsi/cm_report.h"
#include "process/process.h"
#include "report/report_lock.h"
#include "tap/traffic.h"

enum { CNP = SERVICE_CNP << 5 | 1 };

/* What is reported: the counts of a queue pair, a device or nobody, and of the strays what peers count. */
struct reported {
    const struct counts_total *total;
    const uint64_t *by_peers; /* NULL: not there */
};

/* "name":5, with a comma before it where there was one. */
static void report_part(FILE *out, const char **separator, const char *name, uint64_t value)
{
    fprintf(out, "%s\"%s\":%llu", *separator, name, (unsigned long long)value);
    *separator = ",";
}

/* {"RC SEND_ONLY":5,...}: what there was of each operation; CNPs have a number of their own. */
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

/* Of packets by number, without what ended in an error here. */
static void report_dropped(FILE *out, const struct counts *counts)
{
    const char *separator = "";
    char number[16];
    fputs("{", out);
    for (unsigned place = 0; place < COUNTS_REASONS; place++)
        if (counts->reasons[place] && (place < COUNTS_REQUESTER || place >= COUNTS_RESPONDER)) {
            snprintf(number, sizeof number, "%u", counts_reason_at(place));
            report_part(out, &separator, number, counts->reasons[place]);
        }
    fputs("}", out);
}

static void report_reasons(FILE *out, const struct counts *counts)
{
    const char *separator = "";
    fputs("{", out);
    for (unsigned place = 0; place < COUNTS_REASONS; place++) {
        const char *name = reason_name(counts_reason_at(place));
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

/* The parts of a key, from the first on. */
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

/* The fields of an object, without its braces. */
static void report_total(FILE *out, const struct counts_total *total, const uint64_t *by_peers)
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

/* What peers did by themselves in this process's memory. They count it, but not for which device or queue pair. */
static void report_strays(FILE *out, const struct process *process)
{
    struct node_one_sided done;
    node_count_one_sided(process->node, &done);
    uint64_t by_peers[] = {
        [BY_PEERS_WRITES] = done.writes, [BY_PEERS_READS] = done.reads, [BY_PEERS_BYTES] = done.bytes};
    report_total(out, &process->traffic.strays, by_peers);
}

void traffic_report_qp(FILE *out, const struct qp *qp)
{
    struct counts_total total = {0};
    traffic_add(&total, &qp->flow);
    fputs(",\"traffic\":{", out);
    report_total(out, &total, NULL);
    fputs("}", out);
}

/* One that has many handles counts once. What stands still under a lock that is not given back is read without. */
static void add_living(struct counts_total *totals, const struct process *process)
{
    struct context *context;
    struct object *object;
    LIST_FOREACH (context, &process->contexts, siblings)
        LIST_FOREACH (object, &context->objects[OBJECT_QP], siblings) {
            struct qp *qp = (struct qp *)((char *)object - offsetof(struct qp, object));
            bool first = !qp->xrc.shared || LIST_FIRST(&qp->xrc.shared->xrc.handles) == qp;
            qp = qp_real(qp);
            if (!first)
                continue;
            bool locked = report_lock(&qp->lock);
            traffic_add(&totals[context->device->index], &qp->flow);
            if (locked)
                lock_release(&qp->lock);
        }
}

void traffic_report(FILE *out, const struct process *process)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    struct counts_total *totals = malloc(DEVICES_MAX * sizeof *totals);
    if (!totals)
        return;
    memcpy(totals, process->traffic.totals, DEVICES_MAX * sizeof *totals);
    add_living(totals, process);
    fputs(",\"traffic\":[", out);
    for (unsigned i = 0; i < count; i++) {
        fprintf(out, "%s{\"device\":", i ? "," : "");
        clean_json(out, devices[i].name);
        fputs(",", out);
        report_total(out, &totals[i], NULL);
        fputs("}", out);
    }
    fputs("],\"strays\":{", out);
    report_strays(out, process);
    fputs("}", out);
    free(totals);
}

/* As add_living, without waiting for ever. */
static void report_messages(FILE *out, struct process *process)
{
    struct cm *cm = atomic_load(&process->cm);
    if (!cm)
        return;
    bool locked = report_lock(&cm->lock);
    cm_report_messages(out, cm);
    if (locked)
        lock_release(&cm->lock);
}

static void append(const char *path, const char *text, size_t size)
{
    struct output file;
    int error = output_open(&file, path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK);
    bool opened = !error;
    if (opened && output_write(&file, text, size) < size)
        error = errno;
    if (error)
        log_write(LOG_ERROR, "the counters can't be written to \"%s\": %s", path, strerror(error));
    if (opened)
        output_close(&file);
}

void traffic_report_end(struct process *process)
{
    char *text = NULL;
    size_t size = 0;
    const char *path = setting_text(SETTING_COUNTERS);
    FILE *out = path && *path ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    fprintf(out, "{\"pid\":%d,\"program\":", (int)getpid());
    clean_json(out, program_invocation_short_name);
    traffic_report(out, process);
    report_messages(out, process);
    fputs("}\n", out);
    fclose(out);
    append(path, text, size);
    free(text);
}
