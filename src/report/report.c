#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/device_state.h"
#include "diag/clean.h"
#include "events/words.h"
#include "facts/fill.h"
#include "gsi/cm/cm_report.h"
#include "process/port_state.h"
#include "report/account.h"
#include "report/event.h"
#include "report/inject.h"
#include "report/object_types.h"
#include "report/recent_events.h"
#include "report/report_lock.h"
#include "report/traffic_report.h"
#include "ring/trace_control.h"
#include "script/live/requests.h"
#include "verbs/ask/cq_report.h"
#include "verbs/ask/qp_account.h"
#include "verbs/ask/qp_flight.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/ask/qp_story_report.h"
#include "verbs/ask/srq_report.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/queue/comp_channel.h"

/* A connected queue pair looks its peer up when it sends; before that the host's directory is asked here. */
static void fill_peer(struct facts_qp *facts, const struct qp *qp)
{
    bool connected = !(qp->traits & QP_DATAGRAM) && qp->state >= IBV_QPS_RTR && qp->path.local;
    struct peer *peer = qp->path.peer;
    if (!peer && connected)
        peer = node_find(qp->process->node, qp->attr.dest_qp_num);
    if (!peer)
        return;
    fact_put(&facts->peer_pid, true, (uint64_t)peer->pid);
    if (peer != qp->path.peer)
        node_put(qp->process->node, peer);
}

/* Returns true if the queue pair sends to one other queue pair and receives from it, or sends to one at a time. */
static bool is_connection(const struct qp *qp)
{
    const uint32_t both = QP_SENDS | QP_RECEIVES, other = QP_DATAGRAM | QP_ETHERNET;
    return (qp->traits & (both | other)) == both || qp->traits & QP_ADDRESSED;
}

static void put_user(struct fact_number *fact, const struct object *object)
{
    if (object)
        fact_put(fact, true, object->handle);
}

static void fill_users(struct facts_qp *facts, const struct qp *qp)
{
    put_user(&facts->pd, qp->memory.pd ? &qp->memory.pd->object : NULL);
    put_user(&facts->send_cq, qp->uses.send_cq ? &qp->uses.send_cq->object : NULL);
    put_user(&facts->recv_cq, qp->uses.receive_cq ? &qp->uses.receive_cq->object : NULL);
    put_user(&facts->srq, qp->uses.srq ? &qp->uses.srq->object : NULL);
}

static void fill_receives(struct facts_qp *facts, struct qp *qp)
{
    struct receive_queue_state state = receive_queue_look(&qp->receives.own);
    fact_put(&facts->recv_posted, true, qp->uses.srq ? 0 : state.posted);
    fact_put(&facts->refused_receives, state.refused, state.refused);
    fact_put(&facts->refused_receive_reason, state.refused, state.reason);
}

static void fill_refused(struct facts_qp *facts, const struct qp *qp)
{
    const struct qp_refused_posts *posts = &qp->told.posts;
    fact_put_flag(&facts->batch, atomic_load(&qp->batch.owner), true);
    if (!posts->count || posts->posted != qp->sends.posted)
        return;
    fact_put(&facts->refused_posts, true, posts->count);
    fact_put(&facts->refused_reason, true, posts->reason);
    facts->refused_call = qp_posting_calls[posts->call];
}

static void fill_qp(struct facts_qp *facts, struct qp *from)
{
    lock_assert_held(&from->lock);
    FACTS_qp(FACT_FILL) facts->type = from->kind->name;
    if (from->told.first_error)
        facts->first_error_told = from->told.words;
    fill_users(facts, from);
    fact_put(&facts->peer_qp,
             is_connection(from) && from->state >= IBV_QPS_RTR &&
                 (from->attr.dest_qp_num || !(from->traits & QP_ADDRESSED)),
             from->attr.dest_qp_num);
    fact_put_flag(&facts->network, is_connection(from) && from->path.remote, true);
    fill_peer(facts, from);
    fact_put(&facts->send_posted, true, from->sends.posted - from->sends.retired);
    fill_receives(facts, from);
    qp_flight_fill(facts, from);
    fill_refused(facts, from);
    fact_put_inner(&facts->traffic, traffic_write_qp, from);
}

static void report_qp(FILE *out, const char *device, const struct object *object)
{
    struct qp *qp = qp_real(container_of(object, struct qp, object));
    struct facts_qp facts = {.device = device, .number = {qp->number, true}};
    bool locked = report_lock(&qp->lock);
    if (locked)
        fill_qp(&facts, qp);
    else
        facts.busy = (struct fact_flag){true, true};
    facts_write(out, &facts_of_qp, &facts);
    if (locked)
        lock_release(&qp->lock);
}

static void report_cq(FILE *out, const char *device, const struct object *object)
{
    struct facts_cq facts = {.device = device, .users = {object->uses, true}};
    cq_report(out, container_of(object, struct cq, object), &facts, NULL);
}

static void report_mr(FILE *out, const char *device, const struct object *object)
{
    const struct mr *from = container_of(object, struct mr, object);
    struct facts_mr these = {.device = device, .pd = {from->region.pd->object.handle, true}}, *facts = &these;
    FACTS_mr(FACT_FILL) facts_write(out, &facts_of_mr, facts);
}

static void report_srq(FILE *out, const char *device, const struct object *object)
{
    struct srq *from = container_of(object, struct srq, object);
    struct facts_srq facts = {.device = device};
    srq_report_fill(&facts, from);
    fact_put(&facts.number, from->xrcd, from->number);
    srq_tags_report(out, from, &facts);
}

static void report_pd(FILE *out, const char *device, const struct object *object)
{
    const struct pd *from = container_of(object, struct pd, object);
    struct facts_pd these = {.device = device}, *facts = &these;
    FACTS_pd(FACT_FILL) facts_write(out, &facts_of_pd, facts);
}

/* The objects of one kind, and the writer of each. */
struct list_told {
    const struct process *process;
    enum object_kind kind;
    void (*report)(FILE *, const char *device, const struct object *);
};

static void write_list(FILE *out, const void *of)
{
    const struct list_told *list = of;
    const char *separator = "";
    fputs("[", out);
    EACH_OBJECT (list->process, list->kind, object) {
        fputs(separator, out);
        list->report(out, context->device->name, object);
        separator = ",";
    }
    fputs("]", out);
}

static void write_tags(FILE *out, const void *of)
{
    const struct process *process = of;
    const char *separator = "";
    fputs("[", out);
    EACH_OBJECT (process, OBJECT_SRQ, object)
        separator = srq_tags_report_list(out, container_of(object, struct srq, object), separator);
    fputs("]", out);
}

/* All devices; if `of` is a process, only those whose port is down. */
static void write_devices(FILE *out, const void *of)
{
    const char *separator = "[";
    const struct process *process = of;
    CONFIG_EACH (device) {
        if (process && !port_state_down(process, port_state_bit(device)) && device_now(device)->up)
            continue;
        fputs(separator, out);
        clean_json(out, device->name);
        separator = ",";
    }
    fputs(*separator == '[' ? "[]" : "]", out);
}

/* The story of the substitute that stands in for another process's queue pair of this number, or null. */
static void report_substitute(FILE *out, const struct process *process, unsigned long number)
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

/* The story of this process's queue pair with this number; without one, or if its lock is kept, of a substitute. */
static void report_story(FILE *out, const struct process *process, unsigned long number)
{
    EACH_OBJECT (process, OBJECT_QP, object) {
        struct qp *qp = qp_real(container_of(object, struct qp, object));
        if (qp->number != number || !report_lock(&qp->lock))
            continue;
        qp_story_report(out, qp);
        lock_release(&qp->lock);
        return;
    }
    report_substitute(out, process, number);
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

/* A thread that makes an object holds process->control for a moment. If it waits for process->progress, which the
 * caller holds, it does not release process->control: false. */
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
    const struct guest *guest;
    lock_assert_held(&process->progress);
    LIST_FOREACH (guest, &process->loop.guests, siblings)
        end_story(qp_of_endpoint(guest->endpoint));
    if (!control_take_at_end(process))
        return;
    EACH_OBJECT (process, OBJECT_QP, object)
        end_story(qp_real(container_of(object, struct qp, object)));
    mutex_release(&process->control);
}

static void write_missing(FILE *out, const void *of)
{
    const struct acknowledgements_missing *from = of;
    struct facts_missing these = {0}, *facts = &these;
    FACTS_missing(FACT_FILL) facts_write(out, &facts_of_missing, facts);
}

static void write_all(int fd, const char *text, size_t size)
{
    for (ssize_t written; size && (written = write(fd, text, size)) > 0; text += written)
        size -= (size_t)written;
}

/* Writes the facts; with `lists` also the facts of objects, which process->control guards. */
static void write_facts(FILE *out, struct process *process, struct facts_process *facts, bool lists)
{
    const struct list_told qps = {process, OBJECT_QP, report_qp}, cqs = {process, OBJECT_CQ, report_cq},
                           srqs = {process, OBJECT_SRQ, report_srq}, mrs = {process, OBJECT_MR, report_mr},
                           pds = {process, OBJECT_PD, report_pd};
    struct traffic_told *traffic = lists ? traffic_report_begin(facts, process) : NULL;
    if (lists) {
        fact_put_inner(&facts->qps, write_list, &qps);
        fact_put_inner(&facts->cqs, write_list, &cqs);
        fact_put_inner(&facts->srqs, write_list, &srqs);
        fact_put_inner(&facts->tags, write_tags, process);
        fact_put_inner(&facts->mrs, write_list, &mrs);
        fact_put_inner(&facts->pds, write_list, &pds);
    }
    facts_write(out, &facts_of_process, facts);
    free(traffic);
}

/* process->control comes before the progress lock that the caller holds, so it is only tried. A thread may keep it, as
 * when it destroys an object and waits for the program: then the report is "busy" and has no lists. */
static void report(FILE *out, struct process *process)
{
    struct acknowledgements_missing missing;
    struct facts_process facts = {.pid = {(uint64_t)getpid(), true}};
    fact_put_inner(&facts.devices, write_devices, NULL);
    fact_put_inner(&facts.down, write_devices, process);
    if (acknowledgements_missing(&missing))
        fact_put_inner(&facts.unacknowledged, write_missing, &missing);
    cm_report(&facts, process);
    bool lists = mutex_try(&process->control);
    fact_put_flag(&facts.busy, !lists, true);
    write_facts(out, process, &facts, lists);
    if (lists)
        mutex_release(&process->control);
    fputs("\n", out);
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
    else if (!strncmp(request, REQUESTS_INJECT, sizeof REQUESTS_INJECT - 1))
        inject_answer(process, request + sizeof REQUESTS_INJECT - 1, out);
    else if (!strncmp(request, QP_ACCOUNT_REQUEST, sizeof QP_ACCOUNT_REQUEST - 1))
        account_write(out, process, request + sizeof QP_ACCOUNT_REQUEST - 1);
    else if (!strncmp(request, TRACE_REQUEST, sizeof TRACE_REQUEST - 1))
        trace_answer(request + sizeof TRACE_REQUEST - 1, out);
    else if (!strncmp(request, REPORT_STORY, sizeof REPORT_STORY - 1))
        answer_story(out, process, request + sizeof REPORT_STORY - 1);
    else if (!strncmp(request, REPORT_EVENTS, sizeof REPORT_EVENTS - 1))
        recent_events_answer(process, request + sizeof REPORT_EVENTS - 1, out);
    else
        report(out, process);
    fclose(out);
    write_all(fd, text, size);
    free(text);
}
