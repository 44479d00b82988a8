/* Asynchronous events: ibv_get_async_event(3), ibv_ack_async_event(3). Thread-safe. */
#ifndef VERBS_OBJECT_ASYNC_H
#define VERBS_OBJECT_ASYNC_H

#include "base/lock.h"
#include <infiniband/verbs.h>
#include <sys/queue.h>

#include "process/event_pipe.h"

struct context;
struct cq;
struct qp;
struct srq;

/* Asynchronous events of a context, in order; the pipe counts them. */
struct async_event {
    struct ibv_async_event ibv;
    STAILQ_ENTRY(async_event) next;
};

struct async {
    struct event_pipe pipe; /* the program polls it */
    struct lock lock;
    STAILQ_HEAD(, async_event) events;
};

int async_initialize(struct async *); /* 0 or errno; makes the descriptor */
void async_destroy(struct async *);

/* Raises an event for the program. Lost, with a log entry, only when memory is exhausted. May be called under any lock.
 */
void async_raise(struct context *, struct ibv_async_event);
void async_raise_cq(struct cq *, enum ibv_event_type);
void async_raise_qp(struct qp *, enum ibv_event_type);
void async_raise_srq(struct srq *, enum ibv_event_type);

/* 0, or -1 and errno (EAGAIN when the descriptor is non-blocking and nothing waits). */
int async_get(struct ibv_context *, struct ibv_async_event *);
void async_acknowledge(struct ibv_async_event *);

/* Withdraws the events of an object that is being destroyed and that nobody fetched yet. `element` is its address. */
void async_withdraw(struct context *, const void *element);

#endif
