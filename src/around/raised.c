#include "around/raised.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "around/library/front.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "script/raised.h"
#include "script/rules.h"

enum { BUCKETS = 1 << 6 };

struct raised_event {
    TAILQ_ENTRY(raised_event) next;
    struct ibv_async_event event;
    bool real; /* the library has raised it, and counts its acknowledgement */
};

struct raised_context {
    struct hash_entry by_address;
    struct ibv_context *ibv;
    struct front front;
    struct raised_list waiting; /* for the program */
    struct raised_list fetched; /* made-up ones that it has not acknowledged */
    SLIST_HEAD(, raised_leaving) leaving;
};

MUTEX_STATIC(raising, LOCK_RAISING);
static struct hash_entry *buckets[BUCKETS];
static struct hash contexts = {buckets, BUCKETS - 1};
static const struct calls *below;

static struct raised_context *find_context(const struct ibv_context *ibv)
{
    lock_assert_held(&raising);
    struct hash_entry *entry = hash_find(&contexts, (uintptr_t)ibv, NULL);
    return entry ? container_of(entry, struct raised_context, by_address) : NULL;
}

static void ring(struct raised_context *context)
{
    lock_assert_held(&raising);
    front_ring(&context->front, TAILQ_EMPTY(&context->waiting) ? NANOS_NEVER : 0);
}

/* -- raising */

/* False: there is no memory, and the event is lost. */
static bool add_event(struct raised_context *context, const struct ibv_async_event *event, bool real)
{
    lock_assert_held(&raising);
    struct raised_event *added = malloc(sizeof *added);
    if (!added)
        return false;
    *added = (struct raised_event){.event = *event, .real = real};
    TAILQ_INSERT_TAIL(&context->waiting, added, next);
    ring(context);
    return true;
}

#define EACH_CONTEXT(context)                                                                                          \
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)                                                              \
        for (struct hash_entry *entry = buckets[bucket]; entry; entry = entry->next)                                   \
            for (struct raised_context *context = container_of(entry, struct raised_context, by_address); context;     \
                 context = NULL)

static void come_to_device(const struct ibv_device *device, enum ibv_event_type type)
{
    lock_assert_held(&raising);
    struct ibv_async_event event = {.event_type = type}; /* the element is all 0, where it is a number */
    event.element.port_num = 1;
    EACH_CONTEXT(context)
    if (context->ibv->device == device && !front_is_inherited(&context->front))
        add_event(context, &event, false);
}

void raised_of_device(const struct ibv_device *device, enum ibv_event_type type)
{
    mutex_take(&raising);
    come_to_device(device, type);
    mutex_release(&raising);
}

void raised_of_object(const struct ibv_context *ibv, const struct ibv_async_event *event)
{
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    if (context)
        add_event(context, event, false);
    mutex_release(&raising);
}

static bool is_first(const struct raised_context *of)
{
    lock_assert_held(&raising);
    EACH_CONTEXT(context)
    if (context->ibv->device == of->ibv->device)
        return context == of;
    return false;
}

void raised_meet_open(unsigned from)
{
    if (!rules_wants(SCRIPT_open))
        return;
    mutex_take(&raising);
    EACH_CONTEXT(context)
    if (is_first(context)) {
        const struct ibv_device *device = context->ibv->device;
        struct script_verdict verdict = rules_apply((struct script_event){
            .call = SCRIPT_open, .subject = {.kind = "device"}, .device = device->name, .from = from});
        if (verdict.raised)
            come_to_device(device, verdict.raised->type);
    }
    mutex_release(&raising);
}

/* -- fetching and acknowledging */

/* The object's record, if it is being destroyed; NULL. */
static struct raised_leaving *find_leaving(struct raised_context *context, const void *object)
{
    lock_assert_held(&raising);
    struct raised_leaving *leaving;
    SLIST_FOREACH(leaving, &context->leaving, next)
    if (leaving->object == object)
        return leaving;
    return NULL;
}

/* False: the event never comes, and is to be acknowledged for the program. */
static bool arrive(struct raised_context *context, const struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct raised_leaving *leaving = find_leaving(context, event->element.qp);
    struct raised_event *lost = leaving ? malloc(sizeof *lost) : NULL;
    if (lost) {
        *lost = (struct raised_event){.event = *event};
        TAILQ_INSERT_TAIL(&leaving->lost, lost, next);
    }
    return !leaving && add_event(context, event, true);
}

static struct raised_context *begin_taking(const struct ibv_context *ibv)
{
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    if (context && !front_begin_taking(&context->front, true))
        context = NULL;
    mutex_release(&raising);
    return context;
}

static bool is_failure(int error)
{
    return error && error != EAGAIN && error != EINTR;
}

/* Up to MOST events. An event comes only when the program finds our descriptor again, so that no wake-up is lost.
 * False: there are no more. */
static bool take_batch(const struct ibv_context *ibv)
{
    enum { MOST = 16 };
    struct ibv_async_event events[MOST];
    bool comes[MOST];
    unsigned count = 0;
    struct raised_context *context = begin_taking(ibv);
    if (!context)
        return false;
    while (count < MOST && !calls_get(below, ibv_get_async_event)(context->ibv, &events[count]))
        count++;
    int error = count < MOST ? errno : 0;
    mutex_take(&raising);
    front_end_taking(&context->front, true);
    for (unsigned i = 0; i < count; i++)
        comes[i] = arrive(context, &events[i]);
    if (is_failure(error))
        front_fail(&context->front);
    mutex_release(&raising);
    for (unsigned i = 0; i < count; i++)
        if (!comes[i])
            calls_get(below, ibv_ack_async_event)(&events[i]);
    return !error;
}

/* In the thread of library/front.h: all that the library has. */
static void take_all(const void *object)
{
    while (take_batch(object)) {
    }
}

/* True: the program has an event, which it is to acknowledge. */
static bool give_one(struct raised_context *context, struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct raised_event *first = TAILQ_FIRST(&context->waiting);
    if (!first) {
        ring(context);
        return false;
    }
    TAILQ_REMOVE(&context->waiting, first, next);
    *event = first->event;
    if (first->real)
        free(first);
    else
        TAILQ_INSERT_TAIL(&context->fetched, first, next);
    ring(context);
    return true;
}

/* False: the context has no descriptor of ours. */
static bool find_front(const struct ibv_context *ibv, int *descriptor, bool *inherited)
{
    mutex_take(&raising);
    const struct raised_context *context = find_context(ibv);
    if (context) {
        *descriptor = context->front.timer;
        *inherited = front_is_inherited(&context->front);
    }
    mutex_release(&raising);
    return context;
}

struct raised_context *raised_lend(const struct ibv_context *ibv)
{
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    if (context)
        front_lend(&context->front);
    mutex_release(&raising);
    return context;
}

void raised_return(struct raised_context *context)
{
    mutex_take(&raising);
    if (context)
        front_return(&context->front);
    mutex_release(&raising);
}

/* The library's descriptor has failed, and it says how. */
static int ask_library(struct ibv_context *ibv, struct ibv_async_event *event)
{
    int cancelled = uncancelled_begin();
    struct raised_context *context = raised_lend(ibv);
    int result = calls_get(below, ibv_get_async_event)(ibv, event), error = errno;
    raised_return(context);
    errno = error;
    uncancelled_end(cancelled);
    return result;
}

enum outcome { WAITS, GIVEN, LIBRARY, GONE };

/* One try, which does not wait. */
static enum outcome take_one(const struct ibv_context *ibv, struct ibv_async_event *event)
{
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    bool given = context && give_one(context, event);
    enum outcome outcome = given ? GIVEN : !context ? GONE : context->front.failed ? LIBRARY : WAITS;
    mutex_release(&raising);
    return outcome;
}

int raised_get(struct ibv_context *ibv, struct ibv_async_event *event)
{
    int descriptor;
    bool inherited = false;
    enum outcome outcome = WAITS;
    if (!find_front(ibv, &descriptor, &inherited))
        return calls_get(below, ibv_get_async_event)(ibv, event);
    if (inherited) {
        errno = ENODEV;
        return -1;
    }
    while (outcome == WAITS && !front_wait(descriptor)) {
        outcome = take_one(ibv, event);
        if (outcome == WAITS && front_is_nonblocking(descriptor)) {
            errno = EAGAIN;
            return -1;
        }
    }
    if (outcome == LIBRARY)
        return ask_library(ibv, event);
    if (outcome == GONE)
        errno = EIO;
    return outcome == GIVEN ? 0 : -1;
}

static bool is_same(const struct ibv_async_event *one, const struct ibv_async_event *other)
{
    return one->event_type == other->event_type && one->element.qp == other->element.qp;
}

static struct raised_event *take_fetched(const struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct raised_event *each;
    EACH_CONTEXT(context)
    TAILQ_FOREACH (each, &context->fetched, next)
        if (is_same(&each->event, event)) {
            TAILQ_REMOVE(&context->fetched, each, next);
            return each;
        }
    return NULL;
}

/* The library waits for the events that it has given before it destroys an object, and for no other. */
void raised_acknowledge(struct ibv_async_event *event)
{
    mutex_take(&raising);
    struct raised_event *made_up = take_fetched(event);
    mutex_release(&raising);
    if (made_up)
        free(made_up);
    else
        calls_get(below, ibv_ack_async_event)(event);
}

/* Moves the events of an object to `to`; NULL: all. */
static void move_events(struct raised_list *from, const void *object, struct raised_list *to)
{
    lock_assert_held(&raising);
    struct raised_event *each = TAILQ_FIRST(from), *next;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (object && each->event.element.qp != object)
            continue;
        TAILQ_REMOVE(from, each, next);
        TAILQ_INSERT_TAIL(to, each, next);
    }
}

static void free_events(struct raised_list *events)
{
    for (struct raised_event *first; (first = TAILQ_FIRST(events));) {
        TAILQ_REMOVE(events, first, next);
        free(first);
    }
}

static bool has_fetched(const struct raised_context *context, const void *object)
{
    lock_assert_held(&raising);
    const struct raised_event *each;
    TAILQ_FOREACH (each, &context->fetched, next)
        if (each->event.element.qp == object)
            return true;
    return false;
}

/* Waits until the program has acknowledged the events that were made up, as the library does for its own. Until then
 * the program may use the object. */
static void wait_for_acknowledgements(const struct ibv_context *ibv, const void *object)
{
    mutex_take(&raising);
    const struct raised_context *context = find_context(ibv);
    while (context && !front_is_inherited(&context->front) && has_fetched(context, object)) {
        mutex_release(&raising);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        mutex_take(&raising);
        context = find_context(ibv);
    }
    mutex_release(&raising);
}

bool raised_begin_leaving(const struct ibv_context *ibv, struct raised_leaving *leaving)
{
    struct raised_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
    struct raised_event *each;
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    TAILQ_INIT(&leaving->lost);
    if (context) {
        move_events(&context->waiting, leaving->object, &waiting);
        SLIST_INSERT_HEAD(&context->leaving, leaving, next);
        ring(context);
    }
    mutex_release(&raising);
    if (!context)
        return false;
    TAILQ_FOREACH (each, &waiting, next) {
        if (each->real)
            calls_get(below, ibv_ack_async_event)(&each->event);
        each->real = false; /* it was acknowledged */
    }
    mutex_take(&raising);
    TAILQ_CONCAT(&leaving->lost, &waiting, next);
    mutex_release(&raising);
    wait_for_acknowledgements(ibv, leaving->object);
    return true;
}

void raised_end_leaving(const struct ibv_context *ibv, struct raised_leaving *leaving, bool stays)
{
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    if (context)
        SLIST_REMOVE(&context->leaving, leaving, raised_leaving, next);
    if (context && stays) {
        TAILQ_CONCAT(&context->waiting, &leaving->lost, next);
        ring(context);
    }
    mutex_release(&raising);
    free_events(&leaving->lost);
}

/* -- contexts */

static void remove_context(struct raised_context *context)
{
    lock_assert_held(&raising);
    free_events(&context->waiting);
    free_events(&context->fetched);
    front_close(&context->front);
    hash_remove(&context->by_address);
    free(context);
}

void raised_adopt(struct ibv_context *ibv)
{
    struct raised_context *context = ibv ? calloc(1, sizeof *context) : NULL;
    if (!context)
        return;
    mutex_take(&raising);
    struct raised_context *old = find_context(ibv); /* its closing ends it */
    if (old)
        hash_remove(&old->by_address);
    TAILQ_INIT(&context->waiting);
    TAILQ_INIT(&context->fetched);
    SLIST_INIT(&context->leaving);
    context->ibv = ibv;
    if (front_open(&context->front, &ibv->async_fd, take_all, ibv)) {
        hash_add(&contexts, &context->by_address, (uintptr_t)ibv);
    } else {
        log_write(LOG_WARN, "No asynchronous event can be raised: no descriptor or thread is left.");
        free(context);
    }
    mutex_release(&raising);
}

struct raised_context *raised_begin_close(const struct ibv_context *ibv)
{
    mutex_take(&raising);
    struct raised_context *context = find_context(ibv);
    if (context)
        front_leave(&context->front, &raising);
    mutex_release(&raising);
    return context;
}

void raised_end_close(struct raised_context *context, bool closed)
{
    mutex_take(&raising);
    if (context && closed)
        remove_context(context);
    else if (context)
        front_stay(&context->front);
    mutex_release(&raising);
}

void raised_begin(const struct calls *library)
{
    below = library;
}
