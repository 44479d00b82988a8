/* Events of CQs and asynchronous ones, fetched and acknowledged. */
#include <pthread.h>

#include "check/hooks.h"
#include "check/layer.h"

static void count(enum shadow_kind kind, const void *handle, unsigned fetched, unsigned acknowledged)
{
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, handle);
    if (shadow) {
        shadow->events += fetched;
        if (fetched)
            shadow->fetcher = (uintptr_t)pthread_self();
        shadow->acknowledged += acknowledged;
    }
    shadow_unlock();
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    int result = layer_below(ibv_get_cq_event)(channel, cq, cq_context);
    if (!result)
        count(SHADOW_CQ, *cq, 1, 0);
    return result;
}

/* Before the library is told, which may let a thread go on that destroys the CQ. */
static void ack_cq_events(struct ibv_cq *cq, unsigned number)
{
    count(SHADOW_CQ, cq, 0, number);
    layer_below(ibv_ack_cq_events)(cq, number);
}

/* Destroying waits for the acknowledgement of events of these only. */
static void count_async(const struct ibv_async_event *event, unsigned fetched, unsigned acknowledged)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return count(SHADOW_CQ, event->element.cq, fetched, acknowledged);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return count(SHADOW_QP, event->element.qp, fetched, acknowledged);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return count(SHADOW_SRQ, event->element.srq, fetched, acknowledged);
    default:
        return;
    }
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    int result = layer_below(ibv_get_async_event)(context, event);
    if (!result)
        count_async(event, 1, 0);
    return result;
}

static void ack_async_event(struct ibv_async_event *event)
{
    count_async(event, 0, 1);
    layer_below(ibv_ack_async_event)(event);
}

void events_fill(struct calls *calls)
{
    calls->ibv_get_cq_event = get_cq_event;
    calls->ibv_ack_cq_events = ack_cq_events;
    calls->ibv_get_async_event = get_async_event;
    calls->ibv_ack_async_event = ack_async_event;
}
