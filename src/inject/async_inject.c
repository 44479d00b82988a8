#include "inject/async_inject.h"

#include <string.h>

#include "process/helper.h"
#include "report/event.h"
#include "tap/delay.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/object/async.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_error.h"
#include "verbs/queue/srq.h"

static bool is_of(const struct calls_subject *subject, const char *kind)
{
    return subject->kind && !strcmp(subject->kind, kind);
}

/* All structs of objects but the flow's begin with a pointer to their context. */
static struct ibv_context *ibv_context_of(const struct calls_subject *subject)
{
    if (is_of(subject, "context"))
        return (struct ibv_context *)subject->object;
    if (is_of(subject, "flow"))
        return ((struct ibv_flow *)subject->object)->context;
    return *(struct ibv_context **)subject->object;
}

static struct context *context_of_subject(const struct calls_subject *subject)
{
    if (!subject->object || is_of(subject, "device") || is_of(subject, "identifier") || is_of(subject, "buf"))
        return NULL;
    struct ibv_context *ibv = ibv_context_of(subject);
    return ibv ? context_of(ibv) : NULL;
}

const char *async_inject_device(const struct calls_subject *subject)
{
    if (is_of(subject, "device"))
        return subject->object ? ((const struct ibv_device *)subject->object)->name : NULL;
    struct context *context = context_of_subject(subject);
    return context ? context->device->name : NULL;
}

void async_inject_freeze(const struct calls_subject *subject, nanos time)
{
    struct context *context = context_of_subject(subject);
    if (context)
        helper_freeze(context->process, time);
}

void async_inject_release(const struct calls_subject *subject)
{
    struct context *context = context_of_subject(subject);
    if (context)
        delay_release_held(traffic_taps(&context->process->traffic));
}

static void raise_for_device(const struct calls_subject *subject, const struct script_raised *raised)
{
    struct context *context = context_of_subject(subject);
    if (!context)
        return;
    struct process *process = context->process;
    mutex_take(&process->control);
    lock_take(&process->progress);
    event_happen(process, context->device, raised);
    lock_release(&process->progress);
    mutex_release(&process->control);
}

static void raise_for_qp(struct ibv_qp *ibv, enum ibv_event_type type)
{
    struct qp *qp = qp_real(qp_of(ibv));
    bool fatal = type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR;
    lock_take(&qp->lock);
    if (fatal) {
        qp_inquiry_settle(qp);
        qp_story_fault(qp, REASON_SCRIPTED);
        qp_fail(qp, type);
        qp_story_keep(qp);
    } else {
        qp_raise(qp, type);
    }
    lock_release(&qp->lock);
}

static void raise_for_cq(struct ibv_cq *ibv, enum ibv_event_type type)
{
    async_raise(context_of(ibv->context), (struct ibv_async_event){.element.cq = ibv, .event_type = type});
}

void async_inject_event(const struct calls_subject *subject, const struct script_raised *raised)
{
    if (!*raised->of)
        raise_for_device(subject, raised);
    else if (!is_of(subject, raised->of) || !subject->object)
        return;
    else if (is_of(subject, "qp"))
        raise_for_qp((struct ibv_qp *)subject->object, raised->type);
    else if (is_of(subject, "cq"))
        raise_for_cq((struct ibv_cq *)subject->object, raised->type);
    else
        srq_raise((struct srq *)subject->object, raised->type);
}
