#include "verbs/life/qp_retire.h"

#include <stdlib.h>

#include "process/progress.h"
#include "runtime/qpns.h"
#include "tap/traffic.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/create/async_get.h"
#include "verbs/disturb/disturb.h"
#include "verbs/life/qp_ends.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/object/domain.h"
#include "verbs/qp/mw_bind.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/qp/qp_part.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/cq_poll.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "verbs/send/transmit.h"

void qp_retire(struct qp *qp)
{
    lock_assert_held(&qp->process->control);
    struct process *process = qp->process;
    qpns_remove(process->numbers, qp->number);
    if (process->inherited)
        return;
    lock_take(&process->progress);
    lock_take(&qp->lock);
    qp_settle(qp);
    lock_release(&qp->lock);
    if (qp->kind->retire)
        qp->kind->retire(qp);
    qp_part_retire(qp);
    progress_forget(process, qp_endpoint(qp));
    lock_release(&process->progress);
    lock_take(&qp->lock);
    qp_withdraw_references(qp);
    qp_unpublish(qp);
    qp_ends_leave(qp);
    mw_leave(qp);
    if (qp->uses.srq && qp->uses.srq->kind->abandon)
        qp->uses.srq->kind->abandon(qp);
    qp_story_end(qp);
    qp_give_back_receive(qp);
    traffic_end(qp_flow(qp));
    lock_release(&qp->lock);
    if (qp->uses.send_cq)
        cq_withdraw(qp->uses.send_cq, qp->number);
    if (qp->uses.receive_cq && qp->uses.receive_cq != qp->uses.send_cq)
        cq_withdraw(qp->uses.receive_cq, qp->number);
}

void qp_wait_for_acknowledgements(struct qp *qp)
{
    struct ibv_qp *ibv = &qp->ibv;
    if (qp->process->inherited)
        return;
    async_withdraw(qp->object.context, qp);
    acknowledgements_wait(&qp->object, &ibv->mutex, &ibv->cond, &ibv->events_completed, qp->told.async_fetched);
}

void qp_release(struct qp *qp)
{
    calls_leave(&qp->batch.calls);
    traffic_release(qp_flow(qp));
    qp_disturb_end(qp);
    domain_give_back(&qp_datapath(qp)->memory);
    free(qp->sends.saved);
    free(qp_datapath(qp)->ways);
    qp_tell_nothing(qp);
    qp_inquiry_end(qp);
    if (qp->kind->release)
        qp->kind->release(qp);
    qp_part_release(qp);
    if (qp_has_receives(qp))
        receive_queue_destroy(&qp->receives.own);
    pthread_mutex_destroy(&qp->ibv.mutex);
    pthread_cond_destroy(&qp->ibv.cond);
    object_free(&qp->object, qp);
}
