#include "around/asynchronous.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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
#include "script/reach.h"
#include "script/rules.h"

enum { BUCKETS = 1 << 6 };

struct event {
    TAILQ_ENTRY(event) next;
    struct ibv_async_event event;
    bool real; /* the library has raised it, and counts its acknowledgement */
};

TAILQ_HEAD(list, event);

struct context {
    struct hash_entry by_address;
    struct ibv_context *ibv;
    struct front front;
    struct list waiting; /* for the program */
    struct list fetched; /* made-up ones that it has not acknowledged */
    SLIST_HEAD(, leaving) leaving;
};

/* An object that is being destroyed: the library waits for the acknowledgement of its events, which come no more. */
struct leaving {
    SLIST_ENTRY(leaving) next;
    const void *object;
    struct list lost; /* these events, without those of the device */
};

MUTEX_STATIC(raising, LOCK_RAISING);
static struct hash_entry *buckets[BUCKETS];
static struct hash contexts = {buckets, BUCKETS - 1};
static atomic_bool prepared;
static struct calls_layer layer;

static struct context *find_context(const struct ibv_context *ibv)
{
    lock_assert_held(&raising);
    struct hash_entry *entry = hash_find(&contexts, (uintptr_t)ibv, NULL);
    return entry ? container_of(entry, struct context, by_address) : NULL;
}

static void ring(struct context *context)
{
    lock_assert_held(&raising);
    front_ring(&context->front, TAILQ_EMPTY(&context->waiting) ? NANOS_NEVER : 0);
}

/* -- raising */

/* False: there is no memory, and the event is lost. */
static bool add_event(struct context *context, const struct ibv_async_event *event, bool real)
{
    lock_assert_held(&raising);
    struct event *added = malloc(sizeof *added);
    if (!added)
        return false;
    *added = (struct event){.event = *event, .real = real};
    TAILQ_INSERT_TAIL(&context->waiting, added, next);
    ring(context);
    return true;
}

#define EACH_CONTEXT(context)                                                                                          \
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)                                                              \
        for (struct hash_entry *entry = buckets[bucket]; entry; entry = entry->next)                                   \
            for (struct context *context = container_of(entry, struct context, by_address); context; context = NULL)

/* To each context of the device. */
static void come_to_device(const struct ibv_device *device, enum ibv_event_type type)
{
    lock_assert_held(&raising);
    struct ibv_async_event event = {.event_type = type}; /* the element is all 0, where it is a number */
    event.element.port_num = 1;
    EACH_CONTEXT(context)
    if (context->ibv->device == device && !front_is_inherited(&context->front))
        add_event(context, &event, false);
}

static void come_to_object(const struct ibv_context *ibv, const struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct context *context = find_context(ibv);
    if (context)
        add_event(context, event, false);
}

static bool is_fatal(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR;
}

static struct ibv_async_event event_of(const struct calls_subject *subject, enum ibv_event_type type)
{
    struct ibv_async_event event = {.event_type = type};
    if (script_reach_is(subject, "qp"))
        event.element.qp = (struct ibv_qp *)subject->object;
    else if (script_reach_is(subject, "cq"))
        event.element.cq = (struct ibv_cq *)subject->object;
    else
        event.element.srq = (struct ibv_srq *)subject->object;
    return event;
}

/* The batch of builders of this thread, during which the library may hold locks that moving the queue pair needs. */
static _Thread_local struct {
    const struct ibv_qp_ex *batch;
    struct ibv_qp *failed; /* is moved at the end of the batch */
} building __attribute__((tls_model("initial-exec")));

static void move_to_error(struct ibv_qp *qp)
{
    int before = errno, cancelled = uncancelled_begin();
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    calls_get(&layer.below, ibv_modify_qp)(qp, &attr, IBV_QP_STATE);
    uncancelled_end(cancelled);
    errno = before;
}

void asynchronous_raise(const struct calls_subject *subject, const struct script_raised *raised)
{
    const struct ibv_context *ibv = script_reach_context(subject);
    bool of_device = !*raised->of;
    if (!ibv || (!of_device && (!subject->object || !script_reach_is(subject, raised->of))))
        return;
    struct ibv_async_event event = event_of(subject, raised->type);
    if (!of_device && is_fatal(raised->type) && building.batch && &building.batch->qp_base == event.element.qp)
        building.failed = event.element.qp;
    else if (!of_device && is_fatal(raised->type))
        move_to_error(event.element.qp);
    mutex_take(&raising);
    if (of_device)
        come_to_device(ibv->device, raised->type);
    else
        come_to_object(ibv, &event);
    mutex_release(&raising);
}

static bool is_first(const struct context *of)
{
    lock_assert_held(&raising);
    EACH_CONTEXT(context)
    if (context->ibv->device == of->ibv->device)
        return context == of;
    return false;
}

void asynchronous_meet_open(unsigned from)
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
static struct leaving *find_leaving(struct context *context, const void *object)
{
    lock_assert_held(&raising);
    struct leaving *leaving;
    SLIST_FOREACH(leaving, &context->leaving, next)
    if (leaving->object == object)
        return leaving;
    return NULL;
}

/* False: the event never comes, and is to be acknowledged for the program. */
static bool arrive(struct context *context, const struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct leaving *leaving = find_leaving(context, event->element.qp);
    struct event *lost = leaving ? malloc(sizeof *lost) : NULL;
    if (lost) {
        *lost = (struct event){.event = *event};
        TAILQ_INSERT_TAIL(&leaving->lost, lost, next);
    }
    return !leaving && add_event(context, event, true);
}

static struct context *begin_taking(const struct ibv_context *ibv)
{
    mutex_take(&raising);
    struct context *context = find_context(ibv);
    if (context && !front_begin_taking(&context->front, true))
        context = NULL;
    mutex_release(&raising);
    return context;
}

static bool is_failure(int error)
{
    return error && error != EAGAIN && error != EINTR;
}

/* Up to `MOST` events. An event comes only when the program finds our descriptor again, so that no wake-up is lost.
 * False: there are no more. */
static bool take_batch(const struct ibv_context *ibv)
{
    enum { MOST = 16 };
    struct ibv_async_event events[MOST];
    bool comes[MOST];
    unsigned count = 0;
    struct context *context = begin_taking(ibv);
    if (!context)
        return false;
    while (count < MOST && !calls_get(&layer.below, ibv_get_async_event)(context->ibv, &events[count]))
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
            calls_get(&layer.below, ibv_ack_async_event)(&events[i]);
    return !error;
}

/* In the thread of library/front.h: all that the library has. */
static void take_all(const void *object)
{
    while (take_batch(object)) {
    }
}

/* True: the program has an event, which it is to acknowledge. */
static bool give_one(struct context *context, struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct event *first = TAILQ_FIRST(&context->waiting);
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
    const struct context *context = find_context(ibv);
    if (context) {
        *descriptor = context->front.timer;
        *inherited = front_is_inherited(&context->front);
    }
    mutex_release(&raising);
    return context;
}

static struct context *lend(const struct ibv_context *ibv)
{
    mutex_take(&raising);
    struct context *context = find_context(ibv);
    if (context)
        front_lend(&context->front);
    mutex_release(&raising);
    return context;
}

static void return_lent(struct context *context)
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
    struct context *context = lend(ibv);
    int result = calls_get(&layer.below, ibv_get_async_event)(ibv, event), error = errno;
    return_lent(context);
    errno = error;
    uncancelled_end(cancelled);
    return result;
}

enum outcome { WAITS, GIVEN, LIBRARY, GONE };

/* One try, which does not wait. */
static enum outcome take_one(const struct ibv_context *ibv, struct ibv_async_event *event)
{
    mutex_take(&raising);
    struct context *context = find_context(ibv);
    bool given = context && give_one(context, event);
    enum outcome outcome = given ? GIVEN : !context ? GONE : context->front.failed ? LIBRARY : WAITS;
    mutex_release(&raising);
    return outcome;
}

static int get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
    int descriptor;
    bool inherited = false;
    enum outcome outcome = WAITS;
    if (!find_front(ibv, &descriptor, &inherited))
        return calls_get(&layer.below, ibv_get_async_event)(ibv, event);
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

static struct event *take_fetched(const struct ibv_async_event *event)
{
    lock_assert_held(&raising);
    struct event *each;
    EACH_CONTEXT(context)
    TAILQ_FOREACH (each, &context->fetched, next)
        if (is_same(&each->event, event)) {
            TAILQ_REMOVE(&context->fetched, each, next);
            return each;
        }
    return NULL;
}

/* The library waits for the events that it has given before it destroys an object, and for no other. */
static void ack_async_event(struct ibv_async_event *event)
{
    mutex_take(&raising);
    struct event *made_up = take_fetched(event);
    mutex_release(&raising);
    if (made_up)
        free(made_up);
    else
        calls_get(&layer.below, ibv_ack_async_event)(event);
}

/* Moves the events of an object to `to`; NULL: all. */
static void move_events(struct list *from, const void *object, struct list *to)
{
    lock_assert_held(&raising);
    struct event *each = TAILQ_FIRST(from), *next;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (object && each->event.element.qp != object)
            continue;
        TAILQ_REMOVE(from, each, next);
        TAILQ_INSERT_TAIL(to, each, next);
    }
}

static void free_events(struct list *events)
{
    for (struct event *first; (first = TAILQ_FIRST(events));) {
        TAILQ_REMOVE(events, first, next);
        free(first);
    }
}

static bool has_fetched(const struct context *context, const void *object)
{
    lock_assert_held(&raising);
    const struct event *each;
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
    const struct context *context = find_context(ibv);
    while (context && !front_is_inherited(&context->front) && has_fetched(context, object)) {
        mutex_release(&raising);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        mutex_take(&raising);
        context = find_context(ibv);
    }
    mutex_release(&raising);
}

/* The object's events come no more. False: its context has no descriptor of ours. */
static bool begin_leaving(const struct ibv_context *ibv, struct leaving *leaving)
{
    struct list waiting = TAILQ_HEAD_INITIALIZER(waiting);
    struct event *each;
    mutex_take(&raising);
    struct context *context = find_context(ibv);
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
            calls_get(&layer.below, ibv_ack_async_event)(&each->event);
        each->real = false; /* it was acknowledged */
    }
    mutex_take(&raising);
    TAILQ_CONCAT(&leaving->lost, &waiting, next);
    mutex_release(&raising);
    wait_for_acknowledgements(ibv, leaving->object);
    return true;
}

/* Where the object stays, what it has lost meanwhile comes. */
static void end_leaving(const struct ibv_context *ibv, struct leaving *leaving, bool stays)
{
    mutex_take(&raising);
    struct context *context = find_context(ibv);
    if (context)
        SLIST_REMOVE(&context->leaving, leaving, leaving, next);
    if (context && stays) {
        TAILQ_CONCAT(&context->waiting, &leaving->lost, next);
        ring(context);
    }
    mutex_release(&raising);
    free_events(&leaving->lost);
}

/* -- contexts */

static void remove_context(struct context *context)
{
    lock_assert_held(&raising);
    free_events(&context->waiting);
    free_events(&context->fetched);
    front_close(&context->front);
    hash_remove(&context->by_address);
    free(context);
}

static struct ibv_context *adopt(struct ibv_context *ibv)
{
    struct context *context = ibv ? calloc(1, sizeof *context) : NULL;
    if (!context)
        return ibv;
    mutex_take(&raising);
    struct context *old = find_context(ibv); /* its closing ends it */
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
    return ibv;
}

static struct ibv_context *open_with_front(struct ibv_device *device)
{
    return adopt(calls_get(&layer.below, ibv_open_device)(device));
}

static struct ibv_context *import_device(int fd)
{
    return adopt(calls_get(&layer.below, ibv_import_device)(fd));
}

static int close_device(struct ibv_context *ibv)
{
    mutex_take(&raising);
    struct context *context = find_context(ibv);
    if (context)
        front_leave(&context->front, &raising);
    mutex_release(&raising);
    int error = calls_get(&layer.below, ibv_close_device)(ibv);
    mutex_take(&raising);
    if (context && error)
        front_stay(&context->front);
    else if (context)
        remove_context(context);
    mutex_release(&raising);
    return error;
}

/* -- objects: the kernel is told the context's descriptor when one is made */

#define CREATES(type, name, of, parameters, arguments)                                                                 \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        struct context *context = lend(of);                                                                            \
        type made = calls_get(&layer.below, ibv_##name) arguments;                                                     \
        return_lent(context);                                                                                          \
        return made;                                                                                                   \
    }
CREATES(struct ibv_cq *, create_cq, of,
        (struct ibv_context * of, int entries, void *cq_context, struct ibv_comp_channel *channel, int vector),
        (of, entries, cq_context, channel, vector))
CREATES(struct ibv_cq_ex *, create_cq_ex, of, (struct ibv_context * of, struct ibv_cq_init_attr_ex *attr), (of, attr))
CREATES(struct ibv_qp *, create_qp, pd->context, (struct ibv_pd * pd, struct ibv_qp_init_attr *attr), (pd, attr))
CREATES(struct ibv_qp *, create_qp_ex, of, (struct ibv_context * of, struct ibv_qp_init_attr_ex *attr), (of, attr))
CREATES(struct ibv_srq *, create_srq, pd->context, (struct ibv_pd * pd, struct ibv_srq_init_attr *attr), (pd, attr))
CREATES(struct ibv_srq *, create_srq_ex, of, (struct ibv_context * of, struct ibv_srq_init_attr_ex *attr), (of, attr))
CREATES(struct ibv_wq *, create_wq, of, (struct ibv_context * of, struct ibv_wq_init_attr *attr), (of, attr))

/* It is not moved at the end of this thread's batch. */
static void forget_failed(const void *object)
{
    if (building.failed == object)
        building.failed = NULL;
}

#define DESTROYS(type, name)                                                                                           \
    static int name(type *object)                                                                                      \
    {                                                                                                                  \
        const struct ibv_context *ibv = object->context;                                                               \
        struct leaving leaving = {.object = object};                                                                   \
        forget_failed(object);                                                                                         \
        bool leaves = begin_leaving(ibv, &leaving);                                                                    \
        int error = calls_get(&layer.below, ibv_##name)(object);                                                       \
        if (leaves)                                                                                                    \
            end_leaving(ibv, &leaving, error);                                                                         \
        return error;                                                                                                  \
    }
DESTROYS(struct ibv_cq, destroy_cq)
DESTROYS(struct ibv_qp, destroy_qp)
DESTROYS(struct ibv_srq, destroy_srq)
DESTROYS(struct ibv_wq, destroy_wq)

/* -- builders */

static void start_batch(struct ibv_qp_ex *qp)
{
    calls_get(&layer.below, ibv_wr_start)(qp);
    building.batch = qp;
}

static void end_batch(void)
{
    struct ibv_qp *failed = building.failed;
    building.batch = NULL;
    building.failed = NULL;
    if (failed)
        move_to_error(failed);
}

static int complete_batch(struct ibv_qp_ex *qp)
{
    int error = calls_get(&layer.below, ibv_wr_complete)(qp);
    end_batch();
    return error;
}

static void abort_batch(struct ibv_qp_ex *qp)
{
    calls_get(&layer.below, ibv_wr_abort)(qp);
    end_batch();
}

static struct calls_layer layer = {.name = "asynchronous",
                                   .place = CALLS_PLACE_ASYNCHRONOUS,
                                   .calls = {.ibv_open_device = open_with_front,
                                             .ibv_import_device = import_device,
                                             .ibv_close_device = close_device,
                                             .ibv_get_async_event = get_async_event,
                                             .ibv_ack_async_event = ack_async_event,
                                             .ibv_create_cq = create_cq,
                                             .ibv_create_cq_ex = create_cq_ex,
                                             .ibv_create_qp = create_qp,
                                             .ibv_create_qp_ex = create_qp_ex,
                                             .ibv_create_srq = create_srq,
                                             .ibv_create_srq_ex = create_srq_ex,
                                             .ibv_create_wq = create_wq,
                                             .ibv_destroy_cq = destroy_cq,
                                             .ibv_destroy_qp = destroy_qp,
                                             .ibv_destroy_srq = destroy_srq,
                                             .ibv_destroy_wq = destroy_wq,
                                             .ibv_wr_start = start_batch,
                                             .ibv_wr_complete = complete_batch,
                                             .ibv_wr_abort = abort_batch}};

void asynchronous_prepare(void)
{
    atomic_store(&prepared, true);
    calls_put_around(&layer);
}

bool asynchronous_is_prepared(void)
{
    return atomic_load(&prepared);
}
