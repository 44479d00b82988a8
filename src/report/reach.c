#include "report/reach.h"

#include <string.h>

#include "process/helper.h"
#include "report/event.h"
#include "tap/delay.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/disturb/scripted.h"
#include "verbs/object/async.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_error.h"
#include "verbs/queue/srq.h"
#include "verbs/send/post_receive.h"

static struct context *context_of_subject(const struct calls_subject *subject)
{
    struct ibv_context *ibv = script_reach_context(subject);
    return ibv ? context_of(ibv) : NULL;
}

static const char *device_of(const struct calls_subject *subject)
{
    if (script_reach_is(subject, "device"))
        return subject->object ? ((const struct ibv_device *)subject->object)->name : NULL;
    struct context *context = context_of_subject(subject);
    return context ? context->device->name : NULL;
}

static void freeze(const struct calls_subject *subject, nanos time)
{
    struct context *context = context_of_subject(subject);
    if (context)
        helper_freeze(context->process, time);
}

static void release(const struct calls_subject *subject)
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

static void raise_asked(const struct calls_subject *subject, const struct script_raised *raised)
{
    if (!*raised->of)
        raise_for_device(subject, raised);
    else if (!script_reach_is(subject, raised->of) || !subject->object)
        return;
    else if (script_reach_is(subject, "qp"))
        raise_for_qp((struct ibv_qp *)subject->object, raised->type);
    else if (script_reach_is(subject, "cq"))
        raise_for_cq((struct ibv_cq *)subject->object, raised->type);
    else
        srq_raise((struct srq *)subject->object, raised->type);
}

/* The list of a receive with this end is the element. */
static struct ibv_recv_wr *scripted(struct ibv_recv_wr *wr, struct ibv_sge *element, struct script_end end)
{
    *element = scripted_receive(end);
    *wr = (struct ibv_recv_wr){.wr_id = wr->wr_id, .sg_list = element, .num_sge = 1};
    return wr;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct script_end end, struct ibv_recv_wr **bad)
{
    struct ibv_sge element;
    return qp_post_receive(qp, scripted(wr, &element, end), bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct script_end end, struct ibv_recv_wr **bad)
{
    struct ibv_sge element;
    return srq_post(srq, scripted(wr, &element, end), bad);
}

const struct script_reach report_reach = {.device = device_of,
                                          .event = raise_asked,
                                          .freeze = freeze,
                                          .release = release,
                                          .post_send = scripted_post_send,
                                          .post_recv = post_recv,
                                          .post_srq_recv = post_srq_recv,
                                          .build = scripted_build};
