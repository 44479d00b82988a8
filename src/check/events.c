/* Events of CQs and asynchronous events: how programs arm, fetch and acknowledge them. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "calls/questions.h"
#include "check/hooks_call.h"
#include "check/idle.h"
#include "check/layer.h"
#include "check/shadow/event_count.h"
#include "check/shadow/refusals.h"

/* Notes an arming: an adapter that looks at new entries only raises an event for entries that come after it. */
static void note_arming(struct shadow *cq, bool solicited_only)
{
    struct calls_cq_entries entries = {0};
    bool known = calls_questions->cq_entries(cq->handle, &entries);
    if (cq->cq.armed.now && known && entries.added != cq->cq.armed.tail)
        cq->cq.armed.raised++;
    cq->cq.armed.now = !solicited_only;
    cq->cq.armed.tail = entries.added;
}

/* The fetched event is of the last arming if no earlier arming has raised one. */
static void note_fetch(const struct ibv_cq *ibv)
{
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    if (cq && cq->cq.armed.raised)
        cq->cq.armed.raised--;
    else if (cq)
        cq->cq.armed.now = false;
    shadow_unlock();
}

/* Notes the thread if it arms while sends are due: they may complete just before, and never raise an event. */
static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    hooks_see_use(SHADOW_CQ, cq, "ibv_req_notify_cq");
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CQ, cq);
    if (shadow) {
        shadow->cq.was_armed = true;
        note_arming(shadow, solicited_only);
        shadow->cq.armer = shadow->cq.sends_due && !solicited_only ? (uintptr_t)pthread_self() : 0;
    }
    shadow_unlock();
    return layer_below(ibv_req_notify_cq)(cq, solicited_only);
}

/* Returns true if work is under way and no CQ of the channel was ever armed, so no event is raised. Under the lock. */
static bool is_unarmed(const struct shadow *channel)
{
    const struct shadow *shadow;
    bool armed = false, due = false;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (shadow->kind == SHADOW_CQ && shadow->cq.channel == channel) {
            armed |= shadow->cq.was_armed;
            due |= shadow->cq.due != 0;
        }
    return due && !armed;
}

/* Lets the rules see that a thread waits. Returns true if the wait may have no end. */
static bool tell_waiting(const struct ibv_comp_channel *handle)
{
    shadow_lock();
    struct shadow *channel = shadow_find(SHADOW_CHANNEL, handle);
    bool unarmed = channel && is_unarmed(channel);
    if (channel)
        HOOKS_CALL(waits.waiting, channel);
    shadow_unlock();
    return unarmed | idle_begin(handle) | refusals_any();
}

static void tell_stuck(const struct ibv_comp_channel *handle)
{
    shadow_lock();
    struct shadow *channel = shadow_find(SHADOW_CHANNEL, handle);
    if (channel && is_unarmed(channel))
        HOOKS_CALL(waits.stuck, channel);
    if (channel)
        HOOKS_CALL(waits.idle, channel);
    shadow_unlock();
    idle_judge(handle);
}

/* Judges the wait when it has lasted half a second, as another thread may be about to arm a CQ. */
static void watch_wait(const struct ibv_comp_channel *channel)
{
    enum { LONG = 500 /* ms */ };
    struct pollfd waits = {.fd = channel->fd, .events = POLLIN};
    if (tell_waiting(channel) && !(fcntl(channel->fd, F_GETFL) & O_NONBLOCK) && !poll(&waits, 1, LONG))
        tell_stuck(channel);
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    watch_wait(channel);
    int result = layer_below(ibv_get_cq_event)(channel, cq, cq_context);
    if (result)
        return result;
    event_count(SHADOW_CQ, *cq, 1, 0);
    note_fetch(*cq);
    return 0;
}

/* Counts before it calls the library, which may wake a thread that destroys the CQ. */
static void ack_cq_events(struct ibv_cq *cq, unsigned number)
{
    event_count(SHADOW_CQ, cq, 0, number);
    layer_below(ibv_ack_cq_events)(cq, number);
}

/* Counts the event if the destruction of its object waits for the acknowledgement. */
static void count_async(const struct ibv_async_event *event, unsigned fetched, unsigned acknowledged)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return event_count(SHADOW_CQ, event->element.cq, fetched, acknowledged);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return event_count(SHADOW_QP, event->element.qp, fetched, acknowledged);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return event_count(SHADOW_SRQ, event->element.srq, fetched, acknowledged);
    default:
        return;
    }
}

static void note_limit(const struct ibv_srq *srq)
{
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_SRQ, srq);
    if (shadow) {
        shadow->srq.reached = true;
        shadow->srq.refilled = false;
    }
    shadow_unlock();
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    int result = layer_below(ibv_get_async_event)(context, event);
    if (!result)
        count_async(event, 1, 0);
    if (!result)
        hooks_see_event(event);
    if (!result && event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
        note_limit(event->element.srq);
    return result;
}

static void ack_async_event(struct ibv_async_event *event)
{
    count_async(event, 0, 1);
    layer_below(ibv_ack_async_event)(event);
}

void events_fill(struct calls *calls)
{
    calls->ibv_req_notify_cq = req_notify_cq;
    calls->ibv_get_cq_event = get_cq_event;
    calls->ibv_ack_cq_events = ack_cq_events;
    calls->ibv_get_async_event = get_async_event;
    calls->ibv_ack_async_event = ack_async_event;
}
