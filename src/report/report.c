#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/device_state.h"
#include "diag/clean.h"
#include "gsi/cm_report.h"
#include "process/port_state.h"
#include "report/account.h"
#include "report/event.h"
#include "report/happened.h"
#include "report/inject.h"
#include "report/looked_at.h"
#include "report/report_lock.h"
#include "report/traffic_report.h"
#include "ring/trace_control.h"
#include "verbs/ask/cq_report.h"
#include "verbs/ask/qp_account.h"
#include "verbs/ask/qp_flight.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/object/words.h"
#include "verbs/queue/comp_channel.h"

static void report_user(FILE *out, const char *name, const struct object *object)
{
    if (object)
        fprintf(out, ",\"%s\":%u", name, object->handle);
}

/* A connected queue pair looks for its peer when it sends; until then the directory is asked. */
static void report_peer(FILE *out, const struct qp *qp)
{
    bool connected = !(qp->traits & QP_DATAGRAM) && qp->state >= IBV_QPS_RTR && qp->path.local;
    struct peer *peer = qp->path.peer;
    if (!peer && connected)
        peer = node_find(qp->process->node, qp->attr.dest_qp_num);
    if (!peer)
        return;
    fprintf(out, ",\"peer_pid\":%d", (int)peer->pid);
    if (peer != qp->path.peer)
        node_put(qp->process->node, peer);
}

/* Both ways between two queue pairs. */
static bool is_connection(const struct qp *qp)
{
    const uint32_t both = QP_SENDS | QP_RECEIVES, other = QP_DATAGRAM | QP_ETHERNET;
    return (qp->traits & (both | other)) == both;
}

static void report_qp(FILE *out, const struct object *object)
{
    struct qp *qp = qp_real((struct qp *)((char *)object - offsetof(struct qp, object)));
    if (!report_lock(&qp->lock)) {
        fprintf(out, "\"number\":%u,\"busy\":true}", qp->number);
        return;
    }
    fprintf(out, "\"number\":%u,\"type\":\"%s\",\"state\":\"%s\"", qp->number, qp->kind->name, words_state(qp->state));
    if (qp->told.first_error)
        fprintf(out, ",\"first_error\":%u,\"first_error_name\":\"%s\"", qp->told.first_error,
                reason_name(qp->told.first_error));
    if (qp->told.first_error && qp->told.words) {
        fputs(",\"first_error_told\":", out);
        clean_json(out, qp->told.words);
    }
    report_user(out, "pd", qp->memory.pd ? &qp->memory.pd->object : NULL);
    report_user(out, "send_cq", qp->uses.send_cq ? &qp->uses.send_cq->object : NULL);
    report_user(out, "recv_cq", qp->uses.receive_cq ? &qp->uses.receive_cq->object : NULL);
    if (qp->uses.srq)
        fprintf(out, ",\"srq\":%u", qp->uses.srq->object.handle);
    if (is_connection(qp) && qp->state >= IBV_QPS_RTR)
        fprintf(out, ",\"peer_qp\":%u", qp->attr.dest_qp_num);
    if (is_connection(qp) && qp->path.remote)
        fputs(",\"network\":true", out);
    report_peer(out, qp);
    fprintf(out, ",\"send_posted\":%u,\"send_wr\":%u,\"recv_posted\":%u,\"recv_wr\":%u",
            qp->sends.posted - qp->sends.retired, qp->cap.max_send_wr,
            qp->uses.srq ? 0 : receive_queue_look(&qp->receives.own).posted, qp->cap.max_recv_wr);
    qp_flight_report(out, qp);
    traffic_report_qp(out, qp);
    fputs("}", out);
    lock_release(&qp->lock);
}

static void report_cq(FILE *out, const struct object *object)
{
    cq_report_object(out, object, NULL);
    fputs("}", out);
}

static void report_mr(FILE *out, const struct object *object)
{
    const struct mr *mr = (const struct mr *)((const char *)object - offsetof(struct mr, object));
    fprintf(out, "\"key\":%u,\"address\":%llu,\"length\":%llu,\"access\":%u,\"pd\":%u}", mr->region.key,
            (unsigned long long)mr->region.base, (unsigned long long)mr->region.length, mr->region.access,
            mr->region.pd->object.handle);
}

static void report_srq(FILE *out, const struct object *object)
{
    struct srq *srq = (struct srq *)((char *)object - offsetof(struct srq, object));
    struct receive_queue_state queue = receive_queue_look(&srq->queue);
    fprintf(out, "\"handle\":%u,\"size\":%u,\"posted\":%u,\"limit\":%u,\"users\":%u", object->handle, queue.capacity,
            queue.posted, queue.limit, object->uses);
    if (srq->xrcd)
        fprintf(out, ",\"number\":%u", srq->number);
    srq_tags_report(out, srq);
    fputs("}", out);
}

static void report_pd(FILE *out, const struct object *object)
{
    fprintf(out, "\"handle\":%u,\"users\":%u}", object->handle, object->uses);
}

static void report_list(FILE *out, const struct process *process, const char *name, enum object_kind kind,
                        void (*report)(FILE *, const struct object *))
{
    const char *separator = "";
    struct context *context;
    struct object *object;
    fprintf(out, ",\"%s\":[", name);
    LIST_FOREACH (context, &process->contexts, siblings)
        LIST_FOREACH (object, &context->objects[kind], siblings) {
            fprintf(out, "%s{\"device\":", separator);
            clean_json(out, context->device->name);
            fputs(",", out);
            report(out, object); /* the rest of the object, with its end */
            separator = ",";
        }
    fputs("]", out);
}

static void report_tags(FILE *out, const struct process *process)
{
    const char *separator = "";
    struct context *context;
    struct object *object;
    fputs(",\"tags\":[", out);
    LIST_FOREACH (context, &process->contexts, siblings)
        LIST_FOREACH (object, &context->objects[OBJECT_SRQ], siblings)
            separator =
                srq_tags_report_list(out, (struct srq *)((char *)object - offsetof(struct srq, object)), separator);
    fputs("]", out);
}

static void report_devices(FILE *out)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    fputs(",\"devices\":[", out);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? "," : "", out);
        clean_json(out, devices[i].name);
    }
    fputs("]", out);
}

/* The devices whose port is down. */
static void report_down(FILE *out, const struct process *process)
{
    unsigned count;
    const char *separator = "";
    const struct device *devices = config_devices(&count);
    fputs(",\"down\":[", out);
    for (unsigned i = 0; i < count; i++) {
        if (!port_state_down(process, port_state_bit(&devices[i])) && device_now(&devices[i])->up)
            continue;
        fputs(separator, out);
        clean_json(out, devices[i].name);
        separator = ",";
    }
    fputs("]", out);
}

/* The one that stands in for another process's queue pair of this number. */
static void report_standin(FILE *out, const struct process *process, unsigned long number)
{
    const struct guest *guest;
    lock_assert_held(&process->progress);
    LIST_FOREACH (guest, &process->loop.guests, siblings) {
        struct qp *qp = qp_of_endpoint(guest->endpoint);
        if (guest->number != number || !report_lock(&qp->lock))
            continue;
        qp_story_report(out, qp);
        lock_release(&qp->lock);
        return;
    }
    fputs("null", out);
}

/* The queue pair with this number, if it is of this process and not being changed. */
static void report_story(FILE *out, const struct process *process, unsigned long number)
{
    struct context *context;
    struct object *object;
    LIST_FOREACH (context, &process->contexts, siblings)
        LIST_FOREACH (object, &context->objects[OBJECT_QP], siblings) {
            struct qp *qp = qp_real((struct qp *)((char *)object - offsetof(struct qp, object)));
            if (qp->number != number || !report_lock(&qp->lock))
                continue;
            qp_story_report(out, qp);
            lock_release(&qp->lock);
            return;
        }
    report_standin(out, process, number);
}

static void answer_story(FILE *out, struct process *process, const char *number)
{
    if (!mutex_try(&process->control)) {
        fputs("{\"busy\":true}\n", out);
        return;
    }
    report_story(out, process, strtoul(number, NULL, 0));
    mutex_release(&process->control);
    fputs("\n", out);
}

static void end_story(struct qp *qp)
{
    if (!report_lock(&qp->lock))
        return;
    qp_story_end(qp);
    lock_release(&qp->lock);
}

/* A thread that makes an object holds it for a moment. One that waits for the progress, which the caller holds, does
 * not give it back. */
static bool control_take_at_end(struct process *process)
{
    enum { ROUNDS = 400 };
    for (unsigned round = 0; round < ROUNDS; round++, lock_wait(round))
        if (mutex_try(&process->control))
            return true;
    return false;
}

void report_stories_end(struct process *process)
{
    struct context *context;
    struct object *object;
    const struct guest *guest;
    lock_assert_held(&process->progress);
    LIST_FOREACH (guest, &process->loop.guests, siblings)
        end_story(qp_of_endpoint(guest->endpoint));
    if (!control_take_at_end(process))
        return;
    LIST_FOREACH (context, &process->contexts, siblings)
        LIST_FOREACH (object, &context->objects[OBJECT_QP], siblings)
            end_story(qp_real((struct qp *)((char *)object - offsetof(struct qp, object))));
    mutex_release(&process->control);
}

/* An object that is being destroyed and waits for the program; the rest is then busy. */
static void report_missing(FILE *out)
{
    struct acknowledgements_missing missing;
    if (acknowledgements_missing(&missing))
        fprintf(out, ",\"unacknowledged\":{\"object\":\"%s\",\"handle\":%u,\"events\":%d}", missing.object,
                missing.handle, missing.events);
}

static void write_all(int fd, const char *text, size_t size)
{
    for (ssize_t written; size && (written = write(fd, text, size)) > 0; text += written)
        size -= (size_t)written;
}

/* The lists are guarded by process->control, which comes before the progress lock that the caller holds: only tried. */
static void report(FILE *out, struct process *process)
{
    fprintf(out, "{\"pid\":%d", (int)getpid());
    report_devices(out);
    report_down(out, process);
    report_missing(out);
    if (mutex_try(&process->control)) {
        traffic_report(out, process);
        report_list(out, process, "qps", OBJECT_QP, report_qp);
        report_list(out, process, "cqs", OBJECT_CQ, report_cq);
        report_list(out, process, "srqs", OBJECT_SRQ, report_srq);
        report_tags(out, process);
        report_list(out, process, "mrs", OBJECT_MR, report_mr);
        report_list(out, process, "pds", OBJECT_PD, report_pd);
        mutex_release(&process->control);
    } else {
        fputs(",\"busy\":true", out);
    }
    cm_report(out, process);
    fputs("}\n", out);
}

void report_write(void *context, const char *request, int fd)
{
    struct process *process = context;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    if (!strncmp(request, REPORT_EVENT, sizeof REPORT_EVENT - 1))
        event_answer(process, request, out);
    else if (!strncmp(request, REPORT_INJECT, sizeof REPORT_INJECT - 1))
        inject_answer(process, request + sizeof REPORT_INJECT - 1, out);
    else if (!strncmp(request, QP_ACCOUNT_REQUEST, sizeof QP_ACCOUNT_REQUEST - 1))
        account_write(out, process, request + sizeof QP_ACCOUNT_REQUEST - 1);
    else if (!strncmp(request, REPORT_TRACE, sizeof REPORT_TRACE - 1))
        trace_answer(request + sizeof REPORT_TRACE - 1, out);
    else if (!strncmp(request, REPORT_STORY, sizeof REPORT_STORY - 1))
        answer_story(out, process, request + sizeof REPORT_STORY - 1);
    else if (!strncmp(request, REPORT_HAPPENED, sizeof REPORT_HAPPENED - 1))
        happened_answer(process, request + sizeof REPORT_HAPPENED - 1, out);
    else
        report(out, process);
    fclose(out);
    write_all(fd, text, size);
    free(text);
}
