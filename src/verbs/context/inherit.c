#include "verbs/context/inherit.h"

#include "base/lock.h"
#include "runtime/qpns.h"
#include "verbs/kinds/ethernet/steering.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/kinds/xrc/xrc_standin.h"
#include "verbs/kinds/xrc/xrcd.h"
#include "verbs/memory/mw.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/srq.h"

static void inherit_qp(struct qp *qp)
{
    lock_inherit(&qp->lock);
    lock_inherit(&qp->batch.lock);
    lock_inherit(&qp->receives.own.lock);
}

/* A batch of completions that the thread began which forked is still its own. */
static void inherit_cq(struct cq *cq)
{
    if (atomic_load(&cq->batch_owner) != (uintptr_t)pthread_self()) {
        atomic_store(&cq->batch_owner, 0);
        lock_inherit(&cq->consumer);
    }
    atomic_store(&cq->taking, false);
    atomic_store(&cq->stopped, false);
    lock_inherit(&cq->lock);
}

static void inherit_srq(struct srq *srq)
{
    lock_inherit(&srq->queue.lock);
    srq_tags_inherit(srq);
}

static void inherit_object(struct object *object)
{
    char *at = (char *)object;
    switch (object->kind) {
    case OBJECT_QP:
        return inherit_qp(qp_real((struct qp *)(at - offsetof(struct qp, object))));
    case OBJECT_WQ: /* which has a queue pair inside */
        return inherit_qp((struct qp *)(at - offsetof(struct qp, object)));
    case OBJECT_CQ:
        return inherit_cq((struct cq *)(at - offsetof(struct cq, object)));
    case OBJECT_SRQ:
        return inherit_srq((struct srq *)(at - offsetof(struct srq, object)));
    case OBJECT_CHANNEL:
        return lock_inherit(&((struct comp_channel *)(at - offsetof(struct comp_channel, object)))->lock);
    case OBJECT_MW:
        return lock_inherit(&((struct mw *)(at - offsetof(struct mw, object)))->lock);
    default:
        return;
    }
}

static void inherit_context(struct context *context)
{
    static const enum object_kind kinds[] = {OBJECT_QP, OBJECT_WQ, OBJECT_CQ, OBJECT_SRQ, OBJECT_CHANNEL, OBJECT_MW};
    struct object *object;
    lock_inherit(&context->async.lock);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        LIST_FOREACH (object, &context->objects[kinds[i]], siblings)
            inherit_object(object);
}

void inherit_process(struct process *process)
{
    struct context *context;
    LIST_FOREACH (context, &process->contexts, siblings)
        inherit_context(context);
    qpns_close(process->numbers);
    qpns_close(process->srqs);
    steering_inherit(process);
    xrc_standins_inherit(process);
    xrcd_inherit(process);
}
