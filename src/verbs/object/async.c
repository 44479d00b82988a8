#include "verbs/object/async.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/device.h"
#include "diag/log.h"
#include "events/events.h"
#include "process/wakeups.h"
#include "verbs/object/context.h"
#include "verbs/object/process_objects.h"

int async_initialize(struct async *async)
{
    STAILQ_INIT(&async->events);
    lock_set_rank(&async->lock, LOCK_INNERMOST);
    return event_pipe_open(&async->pipe, O_CLOEXEC);
}

void async_destroy(struct async *async)
{
    while (!STAILQ_EMPTY(&async->events)) {
        struct async_event *event = STAILQ_FIRST(&async->events);
        STAILQ_REMOVE_HEAD(&async->events, next);
        free(event);
    }
    close(async->pipe.fd);
    event_pipe_close(&async->pipe);
}

void async_raise(struct context *context, struct ibv_async_event ibv)
{
    struct async_event *event = malloc(sizeof *event);
    if (!event) {
        log_write(LOG_ERROR, "no memory for asynchronous event %d: lost", ibv.event_type);
        return;
    }
    event->ibv = ibv;
    event_note(context->device->index, EVENT_ASYNC_EVENT, ibv.event_type, 0);
    lock_take(&context->async.lock);
    STAILQ_INSERT_TAIL(&context->async.events, event, next);
    lock_release(&context->async.lock);
    wakeups_flush(context->process);
    event_pipe_add(&context->async.pipe, 1);
}

unsigned async_raise_port(struct process *process, const struct device *device, enum ibv_event_type type)
{
    unsigned raised = 0;
    struct context *context;
    lock_assert_held(&process->control);
    LIST_FOREACH (context, &process_objects(process)->contexts, siblings)
        if (context->device == device) {
            async_raise(context, (struct ibv_async_event){.event_type = type, .element.port_num = 1});
            raised++;
        }
    return raised;
}
