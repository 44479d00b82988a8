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
#include "process/process.h"
#include "report/report_lock.h"
#include "tap/traffic.h"

enum { CNP = SERVICE_CNP << 5 | 1 };

static void report_number(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, ",\"%s\":%llu", name, (unsigned long long)value);
}

/* {"RC SEND_ONLY":5,...}: what there was of each operation; `frames` are raw Ethernet. */
static void report_packets(FILE *out, const char *name, const uint64_t counts[256], uint64_t cnps, uint64_t frames)
{
    const char *separator = "";
    fprintf(out, "\"%s\":{", name);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        uint64_t count = counts[opcode] + (opcode == CNP ? cnps : 0);
        if (!count || !op_find((uint8_t)opcode))
            continue;
        fprintf(out, "%s\"%s\":%llu", separator, op_table[opcode].name, (unsigned long long)count);
        separator = ",";
    }
    if (frames)
        fprintf(out, "%s\"ETHERNET\":%llu", separator, (unsigned long long)frames);
    fputs("}", out);
}

static void report_dropped(FILE *out, const struct counts *counts)
{
    const char *separator = "";
    fputs(",\"dropped\":{", out);
    for (unsigned place = 0; place < COUNTS_REASONS; place++)
        if (counts->dropped[place] && (place < COUNTS_REQUESTER || place >= COUNTS_RESPONDER)) {
            fprintf(out, "%s\"%u\":%llu", separator, counts_reason_at(place),
                    (unsigned long long)counts->dropped[place]);
            separator = ",";
        }
    fputs("}", out);
}

/* The same by their names, with what ended in an error here. */
static void report_reasons(FILE *out, const struct counts *counts)
{
    const char *separator = "";
    fputs(",\"reasons\":{", out);
    for (unsigned place = 0; place < COUNTS_REASONS; place++) {
        const char *name = reason_name(counts_reason_at(place));
        if (!counts->dropped[place])
            continue;
        fprintf(out, "%s\"%s\":%llu", separator, name ? name : "OTHER", (unsigned long long)counts->dropped[place]);
        separator = ",";
    }
    fputs("}", out);
}

/* By the words of SOFTVERBS_FAULT, so that it is seen whether what was asked for has happened. */
static void report_faults(FILE *out, const uint64_t counts[TRAFFIC_FAULT_KINDS])
{
    static const char *const words[] = {"drop", "dup", "reorder", "delay", "corrupt"};
    const char *separator = "";
    fputs(",\"fault_kinds\":{", out);
    for (unsigned kind = 0; kind < TRAFFIC_FAULT_KINDS; kind++)
        if (counts[kind]) {
            fprintf(out, "%s\"%s\":%llu", separator, words[kind], (unsigned long long)counts[kind]);
            separator = ",";
        }
    fputs("}", out);
}

/* What was done without a packet. */
static void report_direct(FILE *out, const char *name, uint64_t writes, uint64_t reads)
{
    fprintf(out, ",\"%s\":{\"WRITE\":%llu,\"READ\":%llu}", name, (unsigned long long)writes, (unsigned long long)reads);
}

/* The same by peers, in this process's memory. They count it themselves, but for which device or queue pair. */
static void report_peers(FILE *out, const struct process *process)
{
    struct node_one_sided done;
    node_count_one_sided(process->node, &done);
    report_direct(out, "direct_by_peers", done.writes, done.reads);
    report_number(out, "direct_by_peers_bytes", done.bytes);
}

/* The fields of an object, without its braces. */
static void report_total(FILE *out, const struct counts_total *total)
{
    const struct counts *counts = &total->rest;
    report_packets(out, "sent", total->sent, counts->cnps_sent, counts->sent[0]);
    fputs(",", out);
    report_packets(out, "received", total->received, counts->cnps_received, counts->received[0]);
    report_number(out, "bytes_sent", counts->bytes_sent);
    report_number(out, "bytes_received", counts->bytes_received);
    report_number(out, "repeated", counts->repeated);
    report_number(out, "timeouts", counts->timeouts);
    report_number(out, "naks_sent", counts->naks_sent);
    report_number(out, "naks_received", counts->naks_received);
    report_number(out, "rnrs_sent", counts->rnrs_sent);
    report_number(out, "rnrs_received", counts->rnrs_received);
    report_number(out, "cnps_sent", counts->cnps_sent);
    report_number(out, "cnps_received", counts->cnps_received);
    report_direct(out, "direct", counts->direct_writes, counts->direct_reads);
    report_number(out, "direct_bytes", counts->direct_bytes);
    report_number(out, "faults", counts->faults);
    report_faults(out, counts->fault_kinds);
    report_dropped(out, counts);
    report_reasons(out, counts);
}

void traffic_report_qp(FILE *out, const struct qp *qp)
{
    struct counts_total total = {0};
    traffic_add(&total, &qp->flow);
    fputs(",\"traffic\":{", out);
    report_total(out, &total);
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
        report_total(out, &totals[i]);
        fputs("}", out);
    }
    fputs("],\"strays\":{", out);
    report_total(out, &process->traffic.strays);
    report_peers(out, process);
    fputs("}", out);
    free(totals);
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
    fputs("}\n", out);
    fclose(out);
    append(path, text, size);
    free(text);
}
