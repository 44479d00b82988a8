#include "verbs/kinds/xrc/xrc.h"

#include <errno.h>

#include "diag/log.h"
#include "events/refusal.h"
#include "process/progress.h"
#include "runtime/qpns.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/xrc/xrcd.h"
#include "verbs/life/qp_owner.h"
#include "verbs/object/process_objects.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_error.h"
#include "verbs/queue/cq_push.h"
#include "verbs/queue/receive_queue.h"

/* Selects the SRQ, which is not freed as long as qp->lock is held: xrc_remove_srq takes it out of the table first
 * and then looks for its users, under the lock of each queue pair. */
enum reason xrc_select_srq(struct engine_owner *owner, uint32_t number)
{
    struct qp *qp = qp_of_owner(owner);
    if (qp->xrc.selected && qp->xrc.selected->number == number)
        return REASON_NONE;
    struct srq *srq = qpns_find(process_objects(qp->process)->srqs, number);
    qp->xrc.selected = NULL;
    qp->memory.pd = qp->memory.receive_pd = NULL;
    if (!srq)
        return REASON_XRC_SRQ;
    if (srq->xrcd->domain != qp->xrc.domain)
        return REASON_XRC_DOMAIN;
    qp->xrc.selected = srq;
    qp->memory.pd = qp->memory.receive_pd = pd_of(srq->ibv.pd);
    return REASON_NONE;
}

const struct recv_wqe *xrc_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct qp *qp = qp_of_owner(owner);
    bool limit_reached;
    const struct recv_wqe *receive = receive_queue_take(&qp->xrc.selected->queue, least, &limit_reached);
    if (receive)
        qp->xrc.serving = qp->xrc.selected;
    else
        srq_note_empty(qp->xrc.selected, qp->number);
    if (receive && limit_reached)
        srq_raise(qp->xrc.selected, IBV_EVENT_SRQ_LIMIT_REACHED);
    return receive;
}

/* Completes a receive. The entry outlives the queue pair, because it shows that a receive of the SRQ was used. */
void xrc_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct qp *qp = qp_of_owner(owner);
    struct srq *srq = qp->xrc.serving;
    struct completion entry = {
        .id = receive->id,
        .retired = &srq->queue.polled,
        .qp_number = qp->number,
        .status = (uint8_t)arrival->status,
        .opcode = (uint8_t)arrival->opcode,
        .reason = (uint16_t)arrival->reason,
        .length = arrival->length,
        .immediate_or_key = arrival->immediate_or_key,
        .flags = (uint16_t)arrival->flags,
        .lasting = true,
    };
    qp->xrc.serving = NULL;
    if (arrival->status != IBV_WC_SUCCESS)
        log_reason(arrival->status == IBV_WC_WR_FLUSH_ERR ? LOG_DEBUG : LOG_WARN, arrival->reason,
                   "qp 0x%x srq 0x%x receive wr_id %llu status %d", qp->number, srq->number,
                   (unsigned long long)receive->id, arrival->status);
    qp_owner_note_received(qp, receive, arrival);
    receive_queue_free(&srq->queue, receive);
    cq_note_round(srq->cq);
    if (!cq_push(srq->cq, &entry, arrival->solicited || arrival->status != IBV_WC_SUCCESS))
        receive_queue_lost(&srq->queue);
}

/* Enters the SRQ under a new number. */
static int xrc_enter_srq(struct srq *srq)
{
    lock_assert_held(&context_of(srq->ibv.context)->process->control);
    struct process *process = srq->cq->process;
    return qpns_enter(process_node(process), process_objects(process)->srqs, srq, &srq->number);
}

/* Takes the SRQ from a queue pair. One with a message into it under way fails: the message can't be repeated, as its
 * receive is gone. */
static void forget(void *object, void *context)
{
    struct qp *qp = qp_of_endpoint(object);
    struct srq *srq = context;
    lock_take(&qp->lock);
    if (qp->xrc.serving == srq) {
        log_reason(LOG_WARN, REASON_XRC_SRQ_DESTROYED, "qp 0x%x srq 0x%x", qp->number, srq->number);
        bool fails = qp_story_fails(qp, REASON_XRC_SRQ_DESTROYED, 0);
        qp_fail(qp, IBV_EVENT_QP_FATAL);
        if (fails)
            qp_story_keep(qp);
    }
    if (qp->xrc.selected == srq) {
        qp->xrc.selected = NULL;
        qp->memory.pd = qp->memory.receive_pd = NULL;
    }
    lock_release(&qp->lock);
}

/* Takes the SRQ out of the table, where no packet finds it any more, and from all queue pairs. */
static void xrc_remove_srq(struct srq *srq)
{
    lock_assert_held(&context_of(srq->ibv.context)->process->control);
    struct process *process = srq->cq->process;
    qpns_remove(process_objects(process)->srqs, srq->number);
    lock_take(&process->progress);
    qpns_each(process->numbers, forget, srq);
    progress_guests(process, forget, srq);
    lock_release(&process->progress);
}

static int xrc_make_srq(struct srq *srq, struct ibv_srq_init_attr_ex *init)
{
    srq->xrcd = (struct xrcd *)init->xrcd;
    srq->domain = &srq->xrcd->object;
    return object_is_here(srq->domain, context_of(init->pd->context)) ? 0 : refused(ENOENT);
}

/* Packets name an XRC SRQ; no queue pair is made with one. */
static enum reason xrc_refuse_qp(const struct qp_kind *kind)
{
    return REASON_XRC_SRQ_TYPE;
}

const struct srq_kind srq_xrc_kind = {
    .type = IBV_SRQT_XRC,
    .needs = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
    .incomplete = REASON_XRC_SRQ_ATTRIBUTES,
    .refuse = xrc_refuse_qp,
    .make = xrc_make_srq,
    .enter = xrc_enter_srq,
    .remove = xrc_remove_srq,
};

const struct owner_operations xrc_owner_operations = {
    QP_OWNER_COMMON,          .sent = qp_owner_sent,     .take_receive = xrc_take_receive, .select_srq = xrc_select_srq,
    .received = xrc_received, .failed = qp_owner_failed, .dropped = qp_owner_dropped,
};
