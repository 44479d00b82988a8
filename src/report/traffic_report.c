#include "report/traffic_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adverse/adverse.h"
#include "config/config.h"
#include "config/settings.h"
#include "diag/clean.h"
#include "diag/log.h"
#include "diag/output.h"
#include "events/call_counts.h"
#include "gsi/cm_report.h"
#include "report/counts_report.h"
#include "report/looked_at.h"
#include "report/report_lock.h"
#include "tap/traffic.h"

/* Reports the accesses that peers made by themselves in this process's memory. They count it, but not for which device
 * or queue pair. */
static void report_strays(FILE *out, const struct process *process)
{
    struct node_one_sided done;
    node_count_one_sided(process->node, &done);
    uint64_t by_peers[] = {
        [BY_PEERS_WRITES] = done.writes, [BY_PEERS_READS] = done.reads, [BY_PEERS_BYTES] = done.bytes};
    counts_report(out, &process->traffic.strays, by_peers);
}

void traffic_report_qp(FILE *out, const struct qp *qp)
{
    struct counts_total total = {0};
    traffic_add(&total, qp_flow(qp));
    fputs(",\"traffic\":{", out);
    counts_report(out, &total, NULL);
    fputs("}", out);
}

/* The holder of the lock may have lost its processor, and go on while this reads: so each number is loaded at once, and
 * is what it was or what it will be. */
__attribute__((no_sanitize("thread"))) static void copy_counts(struct counts *to, const struct counts *from)
{
    for (unsigned event = 0; event < EVENTS_OF_PACKETS; event++)
        for (unsigned i = 0; i < COUNTS_OPERATIONS; i++)
            to->packets[event][i] = __atomic_load_n(&from->packets[event][i], __ATOMIC_RELAXED);
    for (unsigned i = 0; i < EVENTS_COUNTED; i++)
        to->numbers[i] = __atomic_load_n(&from->numbers[i], __ATOMIC_RELAXED);
    for (unsigned i = 0; i < EVENT_SUMS; i++)
        to->sums[i] = __atomic_load_n(&from->sums[i], __ATOMIC_RELAXED);
    for (unsigned i = 0; i < COUNTS_REASONS; i++)
        to->reasons[i] = __atomic_load_n(&from->reasons[i], __ATOMIC_RELAXED);
}

/* A queue pair whose lock is not given back, as between wr_start and wr_complete, is read without it. */
static void add_flow(struct counts_total *total, struct qp *qp)
{
    if (report_lock(&qp->lock)) {
        traffic_add(total, qp_flow(qp));
        lock_release(&qp->lock);
    } else {
        struct traffic_flow copy = {.service = qp_flow(qp)->service};
        copy_counts(&copy.counts, &qp_flow(qp)->counts);
        traffic_add(total, &copy);
    }
}

/* One that has many handles counts once. */
static void add_living(struct counts_total *totals, const struct process *process)
{
    struct context *context;
    struct object *object;
    LIST_FOREACH (context, &process->contexts, siblings)
        LIST_FOREACH (object, &context->objects[OBJECT_QP], siblings) {
            struct qp *qp = (struct qp *)((char *)object - offsetof(struct qp, object));
            if (!qp->xrc.shared || LIST_FIRST(&qp->xrc.shared->xrc.handles) == qp)
                add_flow(&totals[context->device->index], qp_real(qp));
        }
}

/* Of a process that has shown some. */
static void report_adverse(FILE *out)
{
    const char *before = ",\"adverse\":{", *after = "";
    for (enum adverse each = 0; each < ADVERSE_BEHAVIOURS; each++)
        if (adverse_count(each)) {
            fprintf(out, "%s\"%s\":%llu", before, adverse_word(each), (unsigned long long)adverse_count(each));
            before = ",";
            after = "}";
        }
    fputs(after, out);
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
        counts_report(out, &totals[i], NULL);
        fputs("}", out);
    }
    fputs("],\"strays\":{", out);
    report_strays(out, process);
    fputs("},\"calls\":{", out);
    counts_report_calls(out);
    fputs("}", out);
    report_adverse(out);
    free(totals);
}

/* As add_flow, without waiting for ever. */
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

static void write_report(struct process *process)
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

void traffic_report_end(struct process *process)
{
    write_report(process);
    call_counts_forget();
}
