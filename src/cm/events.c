#include "cm/events.h"

#include <stddef.h>

const char *cm_event_name(enum cm_event_kind kind)
{
    static const char *const names[CM_EVENT_KINDS] = {
        "ADDR_RESOLVED",  "ADDR_ERROR",      "ROUTE_RESOLVED", "ROUTE_ERROR",   "CONNECT_REQUEST",   "CONNECT_RESPONSE",
        "CONNECT_ERROR",  "UNREACHABLE",     "REJECTED",       "ESTABLISHED",   "DISCONNECTED",      "DEVICE_REMOVAL",
        "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE",    "TIMEWAIT_EXIT", "ADDRINFO_RESOLVED", "ADDRINFO_ERROR",
        "USER",           "INTERNAL"};
    return kind < CM_EVENT_KINDS ? names[kind] : "unknown";
}

void event_queue_initialize(struct event_queue *queue, const struct event_queue_operations *operations)
{
    queue->operations = operations;
    queue->count = 0;
    STAILQ_INIT(&queue->events);
}

static void count_queued(const struct cm_event *event, uint32_t change)
{
    event->account->queued += change;
    if (event->secondary)
        event->secondary->queued += change;
    if (!event->requested)
        return;
    event->requested->queued += change;
    event->account->requests += change;
}

void event_push(struct cm_event *event)
{
    struct event_queue *queue = event->account->queue;
    count_queued(event, 1);
    STAILQ_INSERT_TAIL(&queue->events, event, next);
    queue->count++;
    queue->operations->added(queue);
}

static void take_out(struct event_queue *queue, struct cm_event *event)
{
    STAILQ_REMOVE(&queue->events, event, cm_event, next);
    queue->count--;
    count_queued(event, (uint32_t)-1);
}

struct cm_event *event_fetch(struct event_queue *queue)
{
    struct cm_event *event = STAILQ_FIRST(&queue->events);
    if (!event)
        return NULL;
    take_out(queue, event);
    event->account->fetched++;
    if (event->secondary)
        event->secondary->fetched++;
    return event;
}

typedef bool is_of(const struct cm_event *, const struct event_account *);

static bool is_counted_by(const struct cm_event *event, const struct event_account *account)
{
    return event->account == account;
}

static bool concerns(const struct cm_event *event, const struct event_account *account)
{
    return event->account == account || event->secondary == account || event->requested == account;
}

static struct cm_event *take_first(struct event_account *account, is_of *fits)
{
    struct cm_event *event = account->queued ? STAILQ_FIRST(&account->queue->events) : NULL;
    while (event && !fits(event, account))
        event = STAILQ_NEXT(event, next);
    if (!event)
        return NULL;
    take_out(account->queue, event);
    account->queue->operations->removed(account->queue);
    return event;
}

struct cm_event *event_purge(struct event_account *account)
{
    return take_first(account, concerns);
}

static void move_to(struct cm_event *event, struct event_queue *queue)
{
    if (event->secondary)
        event->secondary->queue = queue;
    if (event->requested)
        event->requested->queue = queue;
    event_push(event);
}

void event_move(struct event_account *account, struct event_queue *queue)
{
    STAILQ_HEAD(, cm_event) moving = STAILQ_HEAD_INITIALIZER(moving);
    struct cm_event *event;
    if (account->queue == queue)
        return;
    while ((event = take_first(account, is_counted_by)))
        STAILQ_INSERT_TAIL(&moving, event, next);
    account->queue = queue;
    while ((event = STAILQ_FIRST(&moving))) {
        STAILQ_REMOVE_HEAD(&moving, next);
        move_to(event, queue);
    }
}
