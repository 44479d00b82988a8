#include "around/asynchronous.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "around/raised.h"
#include "base/uncancelled.h"
#include "script/reach.h"

static atomic_bool prepared;
static struct calls_layer layer;

/* -- raising */

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
    if (of_device)
        raised_of_device(ibv->device, raised->type);
    else
        raised_of_object(ibv, &event);
}

/* -- contexts */

static struct ibv_context *open_with_front(struct ibv_device *device)
{
    struct ibv_context *context = calls_get(&layer.below, ibv_open_device)(device);
    raised_adopt(context);
    return context;
}

static struct ibv_context *import_device(int fd)
{
    struct ibv_context *context = calls_get(&layer.below, ibv_import_device)(fd);
    raised_adopt(context);
    return context;
}

static int close_device(struct ibv_context *ibv)
{
    struct raised_context *context = raised_begin_close(ibv);
    int error = calls_get(&layer.below, ibv_close_device)(ibv);
    raised_end_close(context, !error);
    return error;
}

/* -- objects: the kernel is told the context's descriptor when one is made */

#define CREATES(type, name, of, parameters, arguments)                                                                 \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        struct raised_context *context = raised_lend(of);                                                              \
        type made = calls_get(&layer.below, ibv_##name) arguments;                                                     \
        raised_return(context);                                                                                        \
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
        struct raised_leaving leaving = {.object = object};                                                            \
        forget_failed(object);                                                                                         \
        bool leaves = raised_begin_leaving(ibv, &leaving);                                                             \
        int error = calls_get(&layer.below, ibv_##name)(object);                                                       \
        if (leaves)                                                                                                    \
            raised_end_leaving(ibv, &leaving, error);                                                                  \
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
                                             .ibv_get_async_event = raised_get,
                                             .ibv_ack_async_event = raised_acknowledge,
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
    raised_begin(&layer.below);
    atomic_store(&prepared, true);
    calls_put_around(&layer);
}

bool asynchronous_is_prepared(void)
{
    return atomic_load(&prepared);
}
