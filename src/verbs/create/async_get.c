#include "verbs/create/async_get.h"

#include <stdlib.h>

#include "verbs/object/async.h"
#include "verbs/object/process_objects.h"
#include "verbs/qp/qp.h"
#include "verbs/qp/wq.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/srq.h"

/* The object's count of fetched events, and the public count of acknowledged ones with its lock. */
struct tally {
    uint32_t *fetched, *acknowledged;
    pthread_mutex_t *mutex;
    pthread_cond_t *changed;
    const struct object *object;
};

static bool find_tally(const struct ibv_async_event *event, struct tally *tally)
{
    struct cq *cq = (struct cq *)event->element.cq;
    struct qp *qp = (struct qp *)event->element.qp;
    struct srq *srq = (struct srq *)event->element.srq;
    struct wq *wq = (struct wq *)event->element.wq;
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        *tally = (struct tally){&cq->async_fetched, &cq->ibv.async_events_completed, &cq->ibv.mutex, &cq->ibv.cond,
                                &cq->object};
        return true;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        *tally = (struct tally){&qp->told.async_fetched, &qp->ibv.events_completed, &qp->ibv.mutex, &qp->ibv.cond,
                                &qp->object};
        return true;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        *tally = (struct tally){&srq->async_fetched, &srq->ibv.events_completed, &srq->ibv.mutex, &srq->ibv.cond,
                                &srq->object};
        return true;
    case IBV_EVENT_WQ_FATAL:
        *tally = (struct tally){&wq->queue->told.async_fetched, &wq->ibv.events_completed, &wq->ibv.mutex,
                                &wq->ibv.cond, &wq->queue->object};
        return true;
    default:
        return false;
    }
}

static struct async_event *take_first(struct async *async)
{
    struct tally tally;
    lock_take(&async->lock);
    struct async_event *event = STAILQ_FIRST(&async->events);
    if (event) {
        STAILQ_REMOVE_HEAD(&async->events, next);
        if (find_tally(&event->ibv, &tally))
            ++*tally.fetched;
    }
    lock_release(&async->lock);
    return event;
}

int async_get(struct ibv_context *ibv, struct ibv_async_event *out)
{
    struct async *async = &context_of(ibv)->async;
    while (!event_pipe_take(&async->pipe, async->pipe.fd)) {
        /* the event whose byte this was may have been withdrawn meanwhile: then wait for the next */
        struct async_event *event = take_first(async);
        if (event) {
            *out = event->ibv;
            free(event);
            return 0;
        }
    }
    return -1;
}

/* Does nothing in the child of a fork: a thread that does not exist may hold the lock, and destroying never waits. */
void async_acknowledge(struct ibv_async_event *event)
{
    struct tally tally;
    if (!find_tally(event, &tally) || tally.object->context->process->inherited)
        return;
    pthread_mutex_lock(tally.mutex);
    ++*tally.acknowledged;
    pthread_cond_signal(tally.changed);
    pthread_mutex_unlock(tally.mutex);
}

void async_withdraw(struct context *context, const void *element)
{
    struct async *async = &context->async;
    struct async_event *event, *next;
    lock_take(&async->lock);
    for (event = STAILQ_FIRST(&async->events); event; event = next) {
        struct tally tally;
        next = STAILQ_NEXT(event, next);
        if (!find_tally(&event->ibv, &tally) || event->ibv.element.cq != element)
            continue;
        STAILQ_REMOVE(&async->events, event, async_event, next);
        free(event);
        event_pipe_take_back(&async->pipe);
    }
    lock_release(&async->lock);
}
