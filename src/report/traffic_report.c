#include "report/traffic_report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adverse/adverse.h"
#include "config/config.h"
#include "config/settings.h"
#include "diag/clean.h"
#include "diag/log.h"
#include "diag/shared_file.h"
#include "events/call_counts.h"
#include "facts/fill.h"
#include "gsi/cm/cm_report.h"
#include "report/counts_report.h"
#include "report/object_types.h"
#include "report/report_lock.h"
#include "tap/traffic.h"

/* The source of the counts of devices. */
struct traffic_told {
    struct counts_total totals[DEVICES_MAX];
};

/* Writes also the accesses that peers made by themselves in this process's memory. Peers count them, but not by device
 * or queue pair. */
static void write_strays(FILE *out, const void *of)
{
    const struct process *process = of;
    struct node_one_sided done;
    node_count_one_sided(process->node, &done);
    uint64_t by_peers[] = {
        [BY_PEERS_WRITES] = done.writes, [BY_PEERS_READS] = done.reads, [BY_PEERS_BYTES] = done.bytes};
    fputs("{", out);
    counts_report(out, &process->traffic.strays, by_peers);
    fputs("}", out);
}

void traffic_write_qp(FILE *out, const void *qp)
{
    struct counts_total total = {0};
    traffic_add(&total, qp_flow((struct qp *)qp));
    fputs("{", out);
    counts_report(out, &total, NULL);
    fputs("}", out);
}

/* The holder of the lock may have lost its processor, and go on during this copy. So each number is loaded in one
 * access: it is the number before the holder's change or after it. */
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

/* Reads a queue pair without its lock if a thread keeps that, as between wr_start and wr_complete. */
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

/* A shared XRC queue pair with many handles counts once. */
static void add_living(struct counts_total *totals, const struct process *process)
{
    EACH_OBJECT (process, OBJECT_QP, object) {
        struct qp *qp = container_of(object, struct qp, object);
        if (!qp->xrc.shared || LIST_FIRST(&qp->xrc.shared->xrc.handles) == qp)
            add_flow(&totals[context->device->index], qp_real(qp));
    }
}

static void write_calls(FILE *out, const void *nothing)
{
    fputs("{", out);
    counts_report_calls(out);
    fputs("}", out);
}

/* The first behaviour from `each` on that was shown. */
static enum adverse next_shown(enum adverse each)
{
    while (each < ADVERSE_BEHAVIOURS && !adverse_count(each))
        each++;
    return each;
}

static void write_adverse(FILE *out, const void *nothing)
{
    const char *separator = "{";
    for (enum adverse each = next_shown(0); each < ADVERSE_BEHAVIOURS; each = next_shown(each + 1), separator = ",")
        fprintf(out, "%s\"%s\":%llu", separator, adverse_word(each), (unsigned long long)adverse_count(each));
    fputs("}", out);
}

static void write_traffic(FILE *out, const void *of)
{
    const struct traffic_told *told = of;
    fputs("[", out);
    CONFIG_EACH (device) {
        fprintf(out, "%s{\"device\":", device->index ? "," : "");
        clean_json(out, device->name);
        fputs(",", out);
        counts_report(out, &told->totals[device->index], NULL);
        fputs("}", out);
    }
    fputs("]", out);
}

struct traffic_told *traffic_report_begin(struct facts_process *facts, const struct process *process)
{
    struct traffic_told *told = malloc(sizeof *told);
    if (!told)
        return NULL;
    memcpy(told->totals, process->traffic.totals, sizeof told->totals);
    add_living(told->totals, process);
    fact_put_inner(&facts->traffic, write_traffic, told);
    fact_put_inner(&facts->strays, write_strays, process);
    fact_put_inner(&facts->calls, write_calls, NULL);
    if (next_shown(0) < ADVERSE_BEHAVIOURS)
        fact_put_inner(&facts->adverse, write_adverse, NULL);
    return told;
}

/* Reads the connection manager without its lock if a thread keeps that, as add_flow does. */
static void write_messages(FILE *out, const void *of)
{
    struct cm *cm = (struct cm *)of;
    bool locked = report_lock(&cm->lock);
    cm_report_messages(out, cm);
    if (locked)
        lock_release(&cm->lock);
}

static void write_report(struct process *process)
{
    char *text = NULL;
    size_t size = 0;
    const char *path = setting_text(SETTING_COUNTERS);
    FILE *out = path && *path ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    struct facts_process facts = {.pid = {(uint64_t)getpid(), true}, .program = program_invocation_short_name};
    struct traffic_told *traffic = traffic_report_begin(&facts, process);
    if (cm)
        fact_put_inner(&facts.messages, write_messages, cm);
    facts_write(out, &facts_of_process, &facts);
    fputs("\n", out);
    free(traffic);
    fclose(out);
    int error = shared_file_append(path, true, text, size);
    if (error)
        log_write(LOG_ERROR, "the counters can't be written to \"%s\": %s", path, strerror(error));
    free(text);
}

void traffic_report_end(struct process *process)
{
    write_report(process);
    call_counts_forget();
}
