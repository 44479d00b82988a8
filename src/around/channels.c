#include "around/channels.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "around/library/front.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/read_clock.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
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

TAILQ_HEAD(events, event);

struct channel {
    struct hash_entry by_address;
    struct ibv_comp_channel *ibv;
    bool copies;                  /* the library reads a copy of the struct as well */
    struct ibv_comp_channel copy; /* with the library's descriptor; the library counts users in the struct meanwhile */
    struct front front;
    struct events events;
};

struct queue {
    struct hash_entry by_address;
    struct ibv_cq *cq;
    struct channel *channel;
    nanos late;       /* channels_note_late */
    bool armed;       /* the program has asked for an event, and none has come */
    unsigned unacked; /* made-up events that the program has */
    bool leaving;     /* it is being destroyed: the library waits for acknowledgements, and events are lost */
    unsigned missed;  /* these events */
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
    return queue->channel == channel && queue->armed && !queue->leaving && queue->late != NANOS_NEVER;
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

static void ring(struct channel *channel)
{
    lock_assert_held(&channeling);
    const struct queue *late = first_late(channel);
    const struct event *each;
    nanos first = late ? late->late : NANOS_NEVER;
    TAILQ_FOREACH (each, &channel->events, next)
        first = each->due < first ? each->due : first;
    front_ring(&channel->front, first);
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

/* An event that is due stays, if the program polls the completion first. */
void channels_note_late(const struct ibv_cq *cq, nanos due)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    if (queue && queue->channel) {
        if (has_late(queue, queue->channel) && queue->late <= read_clock(CLOCK_MONOTONIC))
            queue->armed = !add_event(queue->channel, queue->cq, 0, false);
        queue->late = due;
        ring(queue->channel);
    }
    mutex_release(&channeling);
}

/* An event that the library has given comes to the program as the rules say. False: it never comes, and is to be
 * acknowledged for the program. */
static bool arrive(struct channel *channel, struct ibv_cq *cq)
{
    lock_assert_held(&channeling);
    struct queue *queue = find_queue(cq);
    struct script_verdict verdict = {0};
    if (queue && queue->leaving) {
        queue->missed++;
        return false;
    }
    if (!queue) /* it was made while its channel was about to be destroyed, and that failed */
        return add_event(channel, cq, 0, true);
    if (rules_wants(SCRIPT_event))
        verdict = rules_apply((struct script_event){
            .call = SCRIPT_event, .subject = {"cq", cq->handle, (uintptr_t)cq}, .device = cq->context->device->name});
    nanos due = read_clock(CLOCK_MONOTONIC) + verdict.delay;
    queue->armed = false;
    if (verdict_has(&verdict, SCRIPT_DROP) || !add_event(channel, cq, due, true))
        return false;
    if (verdict_has(&verdict, SCRIPT_DUPLICATE))
        add_event(channel, cq, due, false);
    return true;
}

static struct channel *begin_taking(const struct ibv_comp_channel *ibv)
{
    mutex_take(&channeling);
    struct channel *channel = find_channel(ibv);
    if (channel && !front_begin_taking(&channel->front, !channel->copies))
        channel = NULL;
    mutex_release(&channeling);
    return channel;
}

static bool is_failure(int error)
{
    return error && error != EAGAIN && error != EINTR;
}

/* Up to MOST events. An event comes only when the program finds our descriptor again, so that no wake-up is lost.
 * False: there are no more. */
static bool take_batch(const struct ibv_comp_channel *ibv)
{
    enum { MOST = 32 };
    struct ibv_cq *cqs[MOST];
    bool comes[MOST];
    unsigned count = 0;
    void *cq_context;
    struct channel *channel = begin_taking(ibv);
    if (!channel)
        return false;
    struct ibv_comp_channel *of = channel->copies ? &channel->copy : channel->ibv;
    while (count < MOST && !calls_get(&layer.below, ibv_get_cq_event)(of, &cqs[count], &cq_context))
        count++;
    int error = count < MOST ? errno : 0;
    mutex_take(&channeling);
    front_end_taking(&channel->front, !channel->copies);
    for (unsigned i = 0; i < count; i++)
        comes[i] = arrive(channel, cqs[i]);
    if (is_failure(error))
        front_fail(&channel->front);
    ring(channel);
    mutex_release(&channeling);
    for (unsigned i = 0; i < count; i++)
        if (!comes[i])
            calls_get(&layer.below, ibv_ack_cq_events)(cqs[i], 1);
    return !error;
}

/* In the thread of library/front.h: all that the library has. */
static void take_all(const void *object)
{
    while (take_batch(object)) {
    }
}

/* -- events of the program */

/* Moves the events of a queue to `to`; NULL: all. */
static void move_events(struct channel *channel, const struct ibv_cq *cq, struct events *to)
{
    lock_assert_held(&channeling);
    struct event *each = TAILQ_FIRST(&channel->events), *next;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (cq && each->cq != cq)
            continue;
        TAILQ_REMOVE(&channel->events, each, next);
        TAILQ_INSERT_TAIL(to, each, next);
    }
}

static void free_events(struct events *events)
{
    for (struct event *first; (first = TAILQ_FIRST(events));) {
        TAILQ_REMOVE(events, first, next);
        free(first);
    }
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

enum outcome { WAITS, GIVEN, LIBRARY, GONE };

/* One try, which does not wait. */
static enum outcome take_one(const struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    mutex_take(&channeling);
    struct channel *channel = find_channel(ibv);
    struct ibv_cq *given = channel ? give_one(channel) : NULL;
    enum outcome outcome = given ? GIVEN : !channel ? GONE : channel->front.failed ? LIBRARY : WAITS;
    if (given)
        *cq = given, *cq_context = given->cq_context;
    mutex_release(&channeling);
    return outcome;
}

/* False: the channel has no descriptor of ours. */
static bool find_front(const struct ibv_comp_channel *ibv, int *descriptor, bool *inherited)
{
    mutex_take(&channeling);
    const struct channel *channel = find_channel(ibv);
    if (channel) {
        *descriptor = channel->front.timer;
        *inherited = front_is_inherited(&channel->front);
    }
    mutex_release(&channeling);
    return channel;
}

static struct channel *lend(struct ibv_comp_channel *of)
{
    mutex_take(&channeling);
    struct channel *channel = find_channel(of);
    if (channel)
        front_lend(&channel->front);
    mutex_release(&channeling);
    return channel;
}

static void return_lent(struct channel *channel)
{
    mutex_take(&channeling);
    if (channel)
        front_return(&channel->front);
    mutex_release(&channeling);
}

/* The library's descriptor has failed, and it says how. */
static int ask_library(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    int cancelled = uncancelled_begin();
    struct channel *channel = lend(ibv);
    int result = calls_get(&layer.below, ibv_get_cq_event)(ibv, cq, cq_context), error = errno;
    return_lent(channel);
    errno = error;
    uncancelled_end(cancelled);
    return result;
}

static int get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    int descriptor;
    bool inherited = false;
    enum outcome outcome = WAITS;
    if (!find_front(ibv, &descriptor, &inherited))
        return calls_get(&layer.below, ibv_get_cq_event)(ibv, cq, cq_context);
    if (inherited) {
        errno = ENODEV;
        return -1;
    }
    while (outcome == WAITS && !front_wait(descriptor)) {
        outcome = take_one(ibv, cq, cq_context);
        if (outcome == WAITS && front_is_nonblocking(descriptor)) {
            errno = EAGAIN;
            return -1;
        }
    }
    if (outcome == LIBRARY)
        return ask_library(ibv, cq, cq_context);
    if (outcome == GONE)
        errno = EIO;
    return outcome == GIVEN ? 0 : -1;
}

/* The library waits for the events that it has given before it destroys a queue, and this layer for its own. */
static void ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    unsigned unacked = queue ? queue->unacked : 0, own = unacked < count ? unacked : count, left = count - own;
    if (queue)
        queue->unacked -= own;
    mutex_release(&channeling);
    if (left || !count)
        calls_get(&layer.below, ibv_ack_cq_events)(cq, left);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    if (queue && queue->channel) {
        queue->armed = true;
        ring(queue->channel);
    }
    mutex_release(&channeling);
    return calls_get(&layer.below, ibv_req_notify_cq)(cq, solicited_only);
}

/* -- channels and queues */

static void remove_queues(const struct channel *channel)
{
    lock_assert_held(&channeling);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct hash_entry *entry = queue_buckets[bucket], *next; entry && (next = entry->next, true);
             entry = next) {
            struct queue *queue = container_of(entry, struct queue, by_address);
            if (queue->channel != channel)
                continue;
            hash_remove(entry);
            queue->channel = NULL;
            if (!queue->leaving)
                free(queue);
        }
}

static void end_channel(struct channel *channel)
{
    lock_assert_held(&channeling);
    remove_queues(channel);
    free_events(&channel->events);
    front_close(&channel->front);
    hash_remove(&channel->by_address);
    free(channel);
}

static void put_in_front(struct channel *channel)
{
    lock_assert_held(&channeling);
    struct ibv_comp_channel *ibv = channel->ibv;
    struct channel *old = find_channel(ibv);
    if (old && old->front.leaving) /* its destruction ends it */
        hash_remove(&old->by_address);
    else if (old) /* of a context that was closed before its channels */
        end_channel(old);
    channel->copy = (struct ibv_comp_channel){.context = ibv->context, .fd = ibv->fd};
    if (front_open(&channel->front, &ibv->fd, take_all, ibv)) {
        hash_add(&channels, &channel->by_address, (uintptr_t)ibv);
        return;
    }
    log_write(LOG_WARN, "Rules of events do not act on a completion channel: no descriptor or thread is left.");
    free(channel);
}

/* rdma-core's reads the descriptor alone, and a copy of the struct will do; softverbs' own, which has no such private
 * part, finds the channel around the struct. */
static bool reads_a_copy(struct ibv_context *context)
{
    const struct verbs_context *extended = verbs_get_ctx(context);
    return extended && extended->priv;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *ibv = calls_get(&layer.below, ibv_create_comp_channel)(context);
    struct channel *channel = ibv ? calloc(1, sizeof *channel) : NULL;
    if (!channel)
        return ibv;
    channel->ibv = ibv;
    channel->copies = reads_a_copy(context);
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
        front_leave(&channel->front, &channeling);
    mutex_release(&channeling);
    int error = calls_get(&layer.below, ibv_destroy_comp_channel)(ibv);
    mutex_take(&channeling);
    if (channel && error)
        front_stay(&channel->front);
    else if (channel)
        end_channel(channel);
    mutex_release(&channeling);
    return error;
}

/* The kernel is told the channel's descriptor when a queue is made. Without a record the queue could not have events,
 * so that is made first. NULL: the channel has no descriptor of ours; *lacks: there is no memory. */
static struct queue *begin_queue(struct ibv_comp_channel *of, bool *lacks)
{
    struct channel *channel = lend(of);
    struct queue *queue = channel ? calloc(1, sizeof *queue) : NULL;
    *lacks = channel && !queue;
    if (*lacks) {
        return_lent(channel);
        errno = ENOMEM;
    }
    if (queue)
        *queue = (struct queue){.channel = channel, .late = NANOS_NEVER};
    return queue;
}

static void end_making(struct queue *queue, struct ibv_cq *cq)
{
    int error = errno;
    if (!queue)
        return;
    return_lent(queue->channel);
    queue->cq = cq;
    mutex_take(&channeling);
    if (cq)
        hash_add(&queues, &queue->by_address, (uintptr_t)cq);
    mutex_release(&channeling);
    if (!cq)
        free(queue);
    errno = error;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *of,
                                int vector)
{
    bool lacks;
    struct queue *queue = begin_queue(of, &lacks);
    if (lacks)
        return NULL;
    struct ibv_cq *cq = calls_get(&layer.below, ibv_create_cq)(context, entries, cq_context, of, vector);
    end_making(queue, cq);
    return cq;
}

static struct ibv_cq_ex *create_cq_of_channel(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    bool lacks;
    struct queue *queue = begin_queue(attr->channel, &lacks);
    if (lacks)
        return NULL;
    struct ibv_cq_ex *cq = calls_get(&layer.below, ibv_create_cq_ex)(context, attr);
    end_making(queue, cq ? ibv_cq_ex_to_cq(cq) : NULL);
    return cq;
}

/* The queue's events come no more. Returns its record; NULL. */
static struct queue *begin_leaving(const struct ibv_cq *cq, struct events *events)
{
    mutex_take(&channeling);
    struct queue *queue = find_queue(cq);
    if (queue) {
        queue->leaving = true;
        queue->missed = 0;
        move_events(queue->channel, cq, events);
        ring(queue->channel);
    }
    mutex_release(&channeling);
    return queue;
}

/* The queue is there still: what it has lost meanwhile comes. */
static void stay(struct queue *queue, struct events *events)
{
    struct event *each;
    mutex_take(&channeling);
    queue->leaving = false;
    TAILQ_FOREACH (each, events, next)
        each->real = false; /* it was acknowledged */
    TAILQ_CONCAT(&queue->channel->events, events, next);
    for (; queue->missed; queue->missed--)
        add_event(queue->channel, queue->cq, 0, false);
    ring(queue->channel);
    mutex_release(&channeling);
}

/* Waits until the program has acknowledged the events that were made up, as the library does for its own. */
static void wait_for_acknowledgements(const struct queue *queue)
{
    mutex_take(&channeling);
    while (queue->unacked && queue->channel && !front_is_inherited(&queue->channel->front)) {
        mutex_release(&channeling);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        mutex_take(&channeling);
    }
    mutex_release(&channeling);
}

static void end_queue(struct queue *queue)
{
    mutex_take(&channeling);
    hash_remove(&queue->by_address);
    mutex_release(&channeling);
    free(queue);
}

static int destroy_cq(struct ibv_cq *cq)
{
    struct events events = TAILQ_HEAD_INITIALIZER(events);
    struct queue *queue = begin_leaving(cq, &events);
    struct event *each;
    TAILQ_FOREACH (each, &events, next)
        if (each->real)
            calls_get(&layer.below, ibv_ack_cq_events)(cq, 1);
    if (queue)
        wait_for_acknowledgements(queue); /* before: until then the program may use the queue */
    int error = calls_get(&layer.below, ibv_destroy_cq)(cq);
    if (queue && error)
        stay(queue, &events);
    else if (queue)
        end_queue(queue);
    free_events(&events);
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
