#include "verbs/queue/comp_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "diag/sentence.h"
#include "events/refusal.h"
#include "verbs/object/control.h"
#include "verbs/queue/cq_note.h"

static void channel_destroy_left(struct object *object)
{
    comp_channel_destroy(object_whole(object));
}

static void channel_inherit(struct object *object)
{
    struct comp_channel *channel = object_whole(object);
    lock_inherit(&channel->lock);
}

static const struct object_class channel_class = {
    .kind = OBJECT_CHANNEL,
    .name = "completion channel",
    .offset = offsetof(struct comp_channel, object),
    .destroy = channel_destroy_left,
    .inherit = channel_inherit,
};

struct ibv_comp_channel *comp_channel_create(struct ibv_context *ibv)
{
    struct context *context = context_of(ibv);
    struct comp_channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    TAILQ_INIT(&channel->ready);
    lock_set_rank(&channel->lock, LOCK_INNERMOST);
    channel->ibv.context = ibv;
    int error = event_pipe_open(&channel->sleeper.wakeup.pipe, O_CLOEXEC);
    if (error) {
        free(channel);
        errno = error;
        return NULL;
    }
    channel->ibv.fd = channel->sleeper.wakeup.pipe.fd;
    object_add(context, &channel->object, &channel_class, UINT32_MAX, NULL);
    return &channel->ibv;
}

int comp_channel_destroy(struct ibv_comp_channel *ibv)
{
    struct comp_channel *channel = (struct comp_channel *)ibv;
    struct context *context = channel->object.context;
    control_lock(context);
    int error = ibv->refcnt
                    ? refuse(EBUSY, REASON_IN_USE, "the " OBJECT_NAMED " has %d user%s", channel->object.class->name,
                             channel->object.handle, ibv->refcnt, plural((unsigned)ibv->refcnt))
                    : object_leave(&channel->object, channel->object.handle, NULL);
    control_unlock(context);
    if (error)
        return error;
    sleepers_close(context->process, &channel->sleeper);
    close(ibv->fd);
    event_pipe_close(&channel->sleeper.wakeup.pipe);
    object_free(&channel->object, channel);
    return 0;
}

void comp_channel_notify(struct comp_channel *channel, struct cq *cq)
{
    lock_take(&channel->lock);
    if (!cq->events.waiting++)
        TAILQ_INSERT_TAIL(&channel->ready, cq, events.ready);
    lock_release(&channel->lock);
    wakeups_add(cq->process, &channel->sleeper.wakeup);
}

bool comp_channel_has(struct comp_channel *channel, const struct cq *cq)
{
    lock_take(&channel->lock);
    bool waits = cq->events.waiting;
    lock_release(&channel->lock);
    return waits;
}

static struct cq *take_first(struct comp_channel *channel)
{
    lock_take(&channel->lock);
    struct cq *cq = TAILQ_FIRST(&channel->ready);
    if (cq) {
        TAILQ_REMOVE(&channel->ready, cq, events.ready);
        cq->events.fetched++;
        if (--cq->events.waiting)
            TAILQ_INSERT_TAIL(&channel->ready, cq, events.ready);
    }
    lock_release(&channel->lock);
    return cq;
}

/* Notes a fetched event, which was counted before, so that the queue is not destroyed meanwhile. A child of a fork does
 * not take a lock of its parent's objects. */
static void note_fetched(struct cq *cq)
{
    if (cq->process->inherited)
        return;
    lock_take(&cq->lock);
    cq_note(cq, EVENT_CQ_EVENT_FETCHED, 0, 0);
    lock_release(&cq->lock);
}

/* 0, or -1 and errno. */
static int sleep_for_event(struct comp_channel *channel)
{
    struct process *process = channel->object.context->process;
    if (process->inherited)
        return 0;
    int error = sleepers_wait(process, &channel->sleeper, channel->ibv.fd);
    errno = error ? error : errno;
    return error ? -1 : 0;
}

int comp_channel_get(struct ibv_comp_channel *ibv, struct ibv_cq **out, void **cq_context)
{
    struct comp_channel *channel = (struct comp_channel *)ibv;
    int fd = ibv->fd; /* the program may destroy the channel while a thread waits */
    while (!sleep_for_event(channel) && !event_pipe_take(&channel->sleeper.wakeup.pipe, fd)) {
        /* the event whose byte this was may have gone with its CQ: then wait for the next */
        struct cq *cq = take_first(channel);
        if (cq) {
            note_fetched(cq);
            *out = &cq->ibv;
            *cq_context = cq->ibv.cq_context;
            return 0;
        }
    }
    return -1;
}

/* Does not count in the child of a fork: a thread that does not exist may hold the lock, and destroying never waits. */
void comp_channel_acknowledge(struct ibv_cq *cq, unsigned count)
{
    if (((struct cq *)cq)->process->inherited)
        return;
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += count;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

uint32_t comp_channel_withdraw(struct comp_channel *channel, struct cq *cq)
{
    lock_take(&channel->lock);
    if (cq->events.waiting)
        TAILQ_REMOVE(&channel->ready, cq, events.ready);
    for (; cq->events.waiting; cq->events.waiting--)
        event_pipe_take_back(&channel->sleeper.wakeup.pipe);
    uint32_t fetched = cq->events.fetched;
    lock_release(&channel->lock);
    return fetched;
}
