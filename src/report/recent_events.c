#include "report/recent_events.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "diag/clean.h"
#include "events/process_events.h"
#include "facts/fill.h"
#include "gsi/cm/cm_report.h"
#include "report/object_types.h"
#include "verbs/ask/cq_report.h"
#include "verbs/ask/srq_report.h"

/* Under process->control. */
static struct object *find_object(const struct process *process, enum object_kind kind, uint32_t handle)
{
    EACH_OBJECT (process, kind, object)
        if (object->handle == handle)
            return object;
    return NULL;
}

static void report_srq(FILE *out, struct object *object, int64_t epoch)
{
    struct srq *srq = container_of(object, struct srq, object);
    struct facts_srq facts = {0};
    srq_report_fill(&facts, srq);
    lock_take(&srq->queue.lock);
    struct last_events_told told = {srq->told, epoch};
    fact_put_inner(&facts.events, last_events_write, &told);
    fputs(",\"srq\":", out);
    facts_write(out, &facts_of_srq, &facts);
    lock_release(&srq->queue.lock);
}

static void report_cq(FILE *out, struct object *object, int64_t epoch)
{
    struct facts_cq facts = {.users = {object->uses, true}};
    fputs(",\"cq\":", out);
    cq_report(out, container_of(object, struct cq, object), &facts, &epoch);
}

static void report_process(FILE *out, int64_t epoch)
{
    struct last_events events = process_events_copy();
    fputs(",\"events\":", out);
    last_events_report(out, &events, epoch);
}

static const struct {
    const char *word;
    enum object_kind kind;
    void (*report)(FILE *, struct object *, int64_t epoch);
} objects[] = {
    {"cq ", OBJECT_CQ, report_cq},
    {"srq ", OBJECT_SRQ, report_srq},
};

static void report_object(FILE *out, struct process *process, const char *request, int64_t epoch)
{
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        size_t length = strlen(objects[i].word);
        if (strncmp(request, objects[i].word, length) != 0 || !mutex_try(&process->control))
            continue;
        struct object *object = find_object(process, objects[i].kind, (uint32_t)strtoul(request + length, NULL, 10));
        if (object)
            objects[i].report(out, object, epoch);
        mutex_release(&process->control);
    }
}

static const struct {
    const char *word;
    void (*report)(FILE *, struct process *, uint32_t number);
} connections[] = {
    {"id ", cm_report_identifier},
    {"partner ", cm_report_partner},
    {"communication ", cm_report_communication},
};

static void report_connection(FILE *out, struct process *process, const char *request)
{
    for (size_t i = 0; i < sizeof connections / sizeof *connections; i++) {
        size_t length = strlen(connections[i].word);
        if (!strncmp(request, connections[i].word, length))
            connections[i].report(out, process, (uint32_t)strtoul(request + length, NULL, 10));
    }
}

void recent_events_answer(struct process *process, const char *request, FILE *out)
{
    int64_t epoch = read_clock_epoch();
    lock_assert_held(&process->progress);
    fprintf(out, "{\"pid\":%d,\"program\":", (int)getpid());
    clean_json(out, program_invocation_short_name);
    if (!strncmp(request, "process", 7))
        report_process(out, epoch);
    else {
        report_object(out, process, request, epoch);
        report_connection(out, process, request);
    }
    fputs("}\n", out);
}
