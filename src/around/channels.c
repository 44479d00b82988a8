#include "around/channels.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "around/library/front.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/read_clock.h"
#include "base/static_lock.h"
#include "calls/calls.h"
#include "diag/log.h"
#include "script/rules.h"

enum { BUCKETS = 1 << 8 };

/* An event that waits until it is due, and then for the program. */
struct event {
    TAILQ_ENTRY(event) next;
    struct ibv_cq *cq;
    nanos due;
    bool real; /* the library has raised it, and counts its acknowledgement */
};

struct channel {
    struct hash_entry by_address;
    struct ibv_comp_channel *ibv;
    struct front front;
    TAILQ_HEAD(, event) events;
};

struct queue {
    struct hash_entry by_address;
    struct ibv_cq *cq;
    struct channel *channel;
    nanos late;       /* channels_note_late */
    bool armed;       /* the program has asked for an event, and none has come */
    unsigned unacked; /* made-up events that the program has */
};

MUTEX_STATIC(channeling, LOCK_CHANNELS);
static struct hash_entry *channel_buckets[BUCKETS], *queue_buckets[BUCKETS];
static struct hash channels = {channel_buckets, BUCKETS - 1}, queues = {queue_buckets, BUCKETS - 1};
static atomic_bool prepared;
static struct calls_layer layer;

static struct channel *find_channel(const struct ibv_comp_channel *ibv)
{
    lock_assert_held(&channeling);
    struct hash_entry *entry = ibv ? hash_find(&channels, (uintptr_t)ibv, NULL) : NULL;
    return entry ? container_of(entry, struct channel, by_address) : NULL;
}

static struct queue *find_queue(const struct ibv_cq *cq)
{
    lock_assert_held(&channeling);
    struct hash_entry *entry = hash_find(&queues, (uintptr_t)cq, NULL);
    return entry ? container_of(entry, struct queue, by_address) : NULL;
}

/* -- when the program's descriptor can be read */

static bool has_late(const struct queue *queue, const struct channel *channel)
{
    return queue->channel == channel && queue->armed && queue->late != NANOS_NEVER;
}

/* The queue of this channel whose late completion comes first; NULL. */
static struct queue *first_late(const struct channel *channel)
{
    lock_assert_held(&channeling);
    struct queue *first = NULL;
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct hash_entry *entry = queue_buckets[bucket]; entry; entry = entry->next) {
            struct queue *queue = container_of(entry, struct queue, by_address);
            if (has_late(queue, channel) && (!first || queue->late < first->late))
                first = queue;
        }
    return first;
}

static void ring(const struct channel *channel)
{
    lock_assert_held(&channeling);
    const struct queue *late = first_late(channel);
    const struct event *each;
    nanos first = late ? late->late : NANOS_NEVER;
    TAILQ_FOREACH (each, &channel->events, next)
        first = each->due < first ? each->due : first;
    front_ring(&channel->front, first);
}

void channels_note_late(const struct ibv_cq *cq, nanos due)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    if (queue) {
        queue->late = due;
        ring(queue->channel);
    }
    mutex_release(&channeling);
}

/* -- events of the library */

/* False: without memory the event is lost. */
static bool add_event(struct channel *channel, struct ibv_cq *cq, nanos due, bool real)
{
    lock_assert_held(&channeling);
    struct event *event = malloc(sizeof *event);
    if (!event)
        return false;
    *event = (struct event){.cq = cq, .due = due, .real = real};
    TAILQ_INSERT_TAIL(&channel->events, event, next);
    return true;
}

/* An event that the library has given comes to the program as the rules say. False: it never comes, and is to be
 * acknowledged for the program. */
static bool arrive(struct channel *channel, struct ibv_cq *cq)
{
    lock_assert_held(&channeling);
    struct queue *queue = find_queue(cq);
    struct script_verdict verdict = {0};
    if (!queue) /* it is about to be destroyed, and the library waits for the acknowledgement */
        return false;
    if (rules_wants(SCRIPT_event))
        verdict = rules_apply((struct script_event){
            .call = SCRIPT_event, .subject = {"cq", cq->handle, (uintptr_t)cq}, .device = cq->context->device->name});
    nanos due = read_clock(CLOCK_MONOTONIC) + verdict.delay;
    queue->armed = false;
    if (verdict_has(&verdict, SCRIPT_DROP) || !add_event(channel, cq, due, true))
        return false;
    if (verdict_has(&verdict, SCRIPT_DUPLICATE))
        add_event(channel, cq, due, false);
    ring(channel);
    return true;
}

static struct channel *begin_taking(const struct ibv_comp_channel *ibv)
{
    mutex_take(&channeling);
    struct channel *channel = find_channel(ibv);
    if (channel && !front_begin_taking(&channel->front, &channel->ibv->fd))
        channel = NULL;
    mutex_release(&channeling);
    return channel;
}

/* In the thread of library/front.h: all that the library has. */
static void take_all(const void *object)
{
    struct ibv_cq *cq;
    void *cq_context;
    struct channel *channel = begin_taking(object);
    while (channel && !calls_get(&layer.below, ibv_get_cq_event)(channel->ibv, &cq, &cq_context)) {
        mutex_take(&channeling);
        bool comes = arrive(channel, cq);
        mutex_release(&channeling);
        if (!comes)
            calls_get(&layer.below, ibv_ack_cq_events)(cq, 1);
    }
    mutex_take(&channeling);
    if (channel)
        front_end_taking(&channel->front, &channel->ibv->fd);
    mutex_release(&channeling);
}

/* -- events of the program */

/* Removes the events of a queue; NULL: of all. Returns how many of them the library wants to be acknowledged. */
static unsigned forget_events(struct channel *channel, const struct ibv_cq *cq)
{
    lock_assert_held(&channeling);
    struct event *each = TAILQ_FIRST(&channel->events), *next;
    unsigned owed = 0;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (cq && each->cq != cq)
            continue;
        owed += each->real;
        TAILQ_REMOVE(&channel->events, each, next);
        free(each);
    }
    return owed;
}

/* The queue whose event is the program's now; NULL: no event is due. */
static struct ibv_cq *give_one(struct channel *channel)
{
    lock_assert_held(&channeling);
    nanos now = read_clock(CLOCK_MONOTONIC);
    struct event *event = TAILQ_FIRST(&channel->events);
    while (event && event->due > now)
        event = TAILQ_NEXT(event, next);
    struct queue *queue = event ? find_queue(event->cq) : first_late(channel);
    struct ibv_cq *cq = event ? event->cq : queue && queue->late <= now ? queue->cq : NULL;
    if (event)
        TAILQ_REMOVE(&channel->events, event, next);
    else if (cq)
        queue->armed = false, queue->late = NANOS_NEVER;
    if (queue && cq && !(event && event->real))
        queue->unacked++;
    free(event);
    ring(channel);
    return cq;
}

/* True: the channel has a descriptor of ours. */
static bool has_front(const struct ibv_comp_channel *ibv, int *descriptor)
{
    mutex_take(&channeling);
    const struct channel *channel = find_channel(ibv);
    if (channel)
        *descriptor = channel->front.timer;
    mutex_release(&channeling);
    return channel;
}

static int get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    int descriptor;
    if (!has_front(ibv, &descriptor))
        return calls_get(&layer.below, ibv_get_cq_event)(ibv, cq, cq_context);
    while (!front_wait(descriptor)) {
        mutex_take(&channeling);
        struct channel *channel = find_channel(ibv);
        struct ibv_cq *given = channel ? give_one(channel) : NULL;
        if (given)
            *cq = given, *cq_context = given->cq_context;
        mutex_release(&channeling);
        if (given)
            return 0;
        if (front_is_nonblocking(descriptor)) {
            errno = EAGAIN;
            return -1;
        }
    }
    return -1;
}

/* The library waits for the events that it has given before it destroys a queue, and for no other. */
static void ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    unsigned unacked = queue ? queue->unacked : 0, own = unacked < count ? unacked : count;
    if (queue)
        queue->unacked -= own;
    mutex_release(&channeling);
    if (count > own || !count)
        calls_get(&layer.below, ibv_ack_cq_events)(cq, count - own);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    if (queue) {
        queue->armed = true;
        ring(queue->channel);
    }
    mutex_release(&channeling);
    return calls_get(&layer.below, ibv_req_notify_cq)(cq, solicited_only);
}

/* -- channels and queues */

static void remove_channel(struct channel *channel)
{
    lock_assert_held(&channeling);
    forget_events(channel, NULL);
    front_close(&channel->front);
    hash_remove(&channel->by_address);
    free(channel);
}

static void put_in_front(struct channel *channel)
{
    lock_assert_held(&channeling);
    struct ibv_comp_channel *ibv = channel->ibv;
    struct channel *old = find_channel(ibv); /* of a context that was closed before its channels */
    if (old)
        remove_channel(old);
    if (front_open(&channel->front, &ibv->fd, take_all, ibv)) {
        hash_add(&channels, &channel->by_address, (uintptr_t)ibv);
        return;
    }
    log_write(LOG_WARN, "Rules of events do not act on a completion channel: no descriptor or thread is left.");
    free(channel);
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *ibv = calls_get(&layer.below, ibv_create_comp_channel)(context);
    struct channel *channel = ibv ? calloc(1, sizeof *channel) : NULL;
    if (!channel)
        return ibv;
    channel->ibv = ibv;
    TAILQ_INIT(&channel->events);
    mutex_take(&channeling);
    put_in_front(channel);
    mutex_release(&channeling);
    return ibv;
}

static int destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    mutex_take(&channeling);
    struct channel *channel = find_channel(ibv);
    if (channel)
        front_leave(&channel->front, &ibv->fd, &channeling);
    mutex_release(&channeling);
    int error = calls_get(&layer.below, ibv_destroy_comp_channel)(ibv);
    mutex_take(&channeling);
    if (channel && error)
        front_stay(&channel->front, &ibv->fd);
    else if (channel)
        remove_channel(channel);
    mutex_release(&channeling);
    return error;
}

static void add_queue(struct ibv_cq *cq, struct channel *channel)
{
    lock_assert_held(&channeling);
    struct queue *queue = cq && channel ? calloc(1, sizeof *queue) : NULL;
    if (!queue)
        return;
    queue->cq = cq;
    queue->channel = channel;
    queue->late = NANOS_NEVER;
    hash_add(&queues, &queue->by_address, (uintptr_t)cq);
}

/* The kernel is told the channel's descriptor when a queue is made. */
static struct channel *lend(struct ibv_comp_channel *of)
{
    mutex_take(&channeling);
    struct channel *channel = find_channel(of);
    if (channel)
        front_lend(&channel->front, &of->fd);
    mutex_release(&channeling);
    return channel;
}

/* Returns the queue; NULL: there is none. */
static struct ibv_cq *made(struct channel *channel, struct ibv_cq *cq)
{
    mutex_take(&channeling);
    if (channel)
        front_return(&channel->front, &channel->ibv->fd);
    add_queue(cq, channel);
    mutex_release(&channeling);
    return cq;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *of,
                                int vector)
{
    struct channel *channel = lend(of);
    return made(channel, calls_get(&layer.below, ibv_create_cq)(context, entries, cq_context, of, vector));
}

static struct ibv_cq_ex *create_cq_of_channel(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct channel *channel = lend(attr->channel);
    struct ibv_cq_ex *cq = calls_get(&layer.below, ibv_create_cq_ex)(context, attr);
    made(channel, cq ? ibv_cq_ex_to_cq(cq) : NULL);
    return cq;
}

/* The queue's record, which is in no table then; NULL. */
static struct queue *take_queue(const struct ibv_cq *cq, unsigned *owed)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    if (queue) {
        *owed = forget_events(queue->channel, cq);
        hash_remove(&queue->by_address);
        ring(queue->channel);
    }
    mutex_release(&channeling);
    return queue;
}

static int destroy_cq(struct ibv_cq *cq)
{
    unsigned owed = 0;
    struct queue *queue = take_queue(cq, &owed); /* first: a new queue may get the address */
    if (owed)
        calls_get(&layer.below, ibv_ack_cq_events)(cq, owed);
    int error = calls_get(&layer.below, ibv_destroy_cq)(cq);
    if (queue && error) {
        mutex_take(&channeling);
        hash_add(&queues, &queue->by_address, (uintptr_t)cq);
        mutex_release(&channeling);
    } else {
        free(queue);
    }
    return error;
}

static struct calls_layer layer = {.name = "channels",
                                   .place = CALLS_PLACE_CHANNELS,
                                   .calls = {.ibv_create_comp_channel = create_comp_channel,
                                             .ibv_destroy_comp_channel = destroy_comp_channel,
                                             .ibv_create_cq = create_cq,
                                             .ibv_create_cq_ex = create_cq_of_channel,
                                             .ibv_destroy_cq = destroy_cq,
                                             .ibv_req_notify_cq = req_notify_cq,
                                             .ibv_get_cq_event = get_cq_event,
                                             .ibv_ack_cq_events = ack_cq_events}};

void channels_prepare(void)
{
    atomic_store(&prepared, true);
    calls_put_around(&layer);
}

bool channels_are_prepared(void)
{
    return atomic_load(&prepared);
}
