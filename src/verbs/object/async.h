/* Raises the asynchronous events of a context; the program fetches them by create/async_get.h. Thread-safe. */
#pragma once

#include "base/lock.h"
#include <infiniband/verbs.h>
#include <sys/queue.h>

#include "process/event_pipe.h"

struct context;
struct device;
struct process;

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

/* Raises an event for the program. It is lost, with a log entry, only when memory is exhausted. May be called under any
 * lock. */
void async_raise(struct context *, struct ibv_async_event);

/* Raises an event of the port or the device in all contexts of the device. Returns their number. Under
 * process->control. */
unsigned async_raise_port(struct process *, const struct device *, enum ibv_event_type);
