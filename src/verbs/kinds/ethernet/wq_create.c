#include "verbs/kinds/ethernet/wq_create.h"

#include <errno.h>
#include <stdlib.h>

#include "config/link_layer.h"
#include "events/refusal.h"
#include "process/progress.h"
#include "runtime/qpns.h"
#include "verbs/create/async_get.h"
#include "verbs/kinds/kinds.h"
#include "verbs/life/qp_create.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_owner.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_error.h"
#include "verbs/queue/cq_poll.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/send/post_receive.h"

enum { WQ_FLAGS = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS };

/* A work queue, which the program has the address of, and the queue pair inside it. */
struct wq_block {
    struct wq wq;
    struct qp_datapath datapath;
};

static struct wq *wq_of(struct ibv_wq *ibv)
{
    return (struct wq *)ibv;
}

static int check_sizes(const struct limits *limits, const struct ibv_wq_init_attr *attr)
{
    if (attr->max_wr > limits->max_qp_wr)
        return refuse(EINVAL, REASON_WQ_SIZE, "max_wr is %u, above %u", attr->max_wr, limits->max_qp_wr);
    if (attr->max_sge > limits->max_sge)
        return refuse(EINVAL, REASON_WQ_SGES, "max_sge is %u, above %u", attr->max_sge, limits->max_sge);
    return 0;
}

static bool knows_all(const struct context *context, const struct ibv_wq_init_attr *attr)
{
    return pd_is_known(attr->pd) && cq_is_known(attr->cq) &&
           object_is_here(&((struct pd *)attr->pd)->object, context) &&
           object_is_here(&((struct cq *)attr->cq)->object, context);
}

/* 0, or the errno of a refusal. */
static int wq_check(const struct context *context, const struct ibv_wq_init_attr *attr)
{
    if (link_layer_is_infiniband(context->device)) /* a work queue serves raw packets alone */
        return refuse(EOPNOTSUPP, REASON_RAW_ON_INFINIBAND, "port 1 is one of InfiniBand");
    if (attr->wq_type != IBV_WQT_RQ)
        return refuse(EINVAL, REASON_WQ_ATTRIBUTES, "wq_type is %u", attr->wq_type);
    if (!attr->pd || !attr->cq)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "%s is NULL", attr->pd ? "cq" : "pd");
    if (attr->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    int error = check_sizes(&context->device->limits, attr);
    if (error)
        return error;
    if (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags & ~(uint32_t)WQ_FLAGS)
        return refuse(EOPNOTSUPP, REASON_RAW_CREATE_FLAGS, "create_flags are 0x%x", attr->create_flags);
    return knows_all(context, attr) ? 0 : refused(ENOENT);
}

static void set_options(struct engine *engine, uint32_t flags)
{
    unsigned options = (flags & IBV_WQ_FLAGS_CVLAN_STRIPPING ? RAW_STRIP_VLAN : 0) |
                       (flags & IBV_WQ_FLAGS_SCATTER_FCS ? RAW_STORE_FRAME_CHECK : 0);
    engine_configure(engine, &(struct engine_settings){.options = options});
}

static int post(struct ibv_wq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return qp_post_receive(&wq_of(ibv)->queue->ibv, wr, bad);
}

static int post_through_layers(struct ibv_wq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    const struct calls *around = calls_around();
    return around ? calls_get(around, ibv_post_wq_recv)(ibv, wr, bad) : post(ibv, wr, bad);
}

void wq_bottom(struct calls *calls)
{
    calls->ibv_post_wq_recv = post;
}

static void set_state(struct wq *wq, enum ibv_wq_state state)
{
    static const uint8_t states[] = {
        [IBV_WQS_RESET] = IBV_QPS_RESET, [IBV_WQS_RDY] = IBV_QPS_RTR, [IBV_WQS_ERR] = IBV_QPS_ERR};
    wq->queue->state = states[state];
    wq->ibv.state = state;
}

static void to_error(struct wq *wq)
{
    set_state(wq, IBV_WQS_ERR);
    engine_flush(qp_engine(wq->queue));
    qp_flush_receives(wq->queue);
}

/* Moves the work queue to the error state for an error of its engine, or of qp_fail, under its queue pair's lock. */
static void failed(struct engine_owner *owner, bool sqe)
{
    struct wq *wq = &container_of(qp_of_owner(owner), struct wq_block, datapath.qp)->wq;
    if (wq->ibv.state == IBV_WQS_RESET)
        return;
    to_error(wq);
    async_raise(wq->queue->object.context,
                (struct ibv_async_event){.element.wq = &wq->ibv, .event_type = IBV_EVENT_WQ_FATAL});
}

static const struct owner_operations wq_operations = {
    QP_OWNER_COMMON,  .sent = qp_owner_sent,       .take_receive = qp_owner_take_receive, .received = qp_owner_received,
    .failed = failed, .dropped = qp_owner_dropped,
};

static void wq_fill(struct wq *wq, struct context *context, const struct ibv_wq_init_attr *attr)
{
    struct qp *qp = wq->queue;
    qp->process = context->process;
    qp->path.port = 1u << context->device->index;
    qp->memory.pd = qp->memory.receive_pd = pd_of(attr->pd);
    qp->uses.parent = pd_object(attr->pd);
    qp->uses.receive_cq = (struct cq *)attr->cq;
    qp_owner(qp)->operations = &wq_operations;
    qp_set_kind(qp, &raw_kind);
    qp->traits |= QP_INSIDE_WQ;
    qp_begin_endpoint(qp, context->device);
    qp->state = IBV_QPS_RESET;
    qp->cap = (struct ibv_qp_cap){.max_recv_wr = attr->max_wr, .max_recv_sge = attr->max_sge};
    qp->receives.queue = &qp->receives.own;
    engine_initialize_raw(qp_engine(qp), qp_owner(qp), &(struct send_queue){.capacity = 1});
    set_options(qp_engine(qp), attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0);
    struct ibv_wq *ibv = &wq->ibv;
    ibv->context = &context->ibv.context;
    ibv->wq_context = attr->wq_context;
    ibv->pd = attr->pd;
    ibv->cq = attr->cq;
    ibv->state = IBV_WQS_RESET;
    ibv->wq_type = attr->wq_type;
    ibv->post_recv = post_through_layers;
    pthread_mutex_init(&ibv->mutex, NULL);
    pthread_cond_init(&ibv->cond, NULL);
}

static void wq_destroy_left(struct object *object)
{
    struct wq *wq = object_whole(object);
    wq->ibv.handle = object->handle;
    wq->ibv.events_completed = wq->queue->told.async_fetched;
    wq_destroy(&wq->ibv);
}

static void wq_inherit_object(struct object *object)
{
    qp_inherit(((struct wq *)object_whole(object))->queue);
}

static void wq_quiesce_object(struct object *object)
{
    qp_quiesce(((struct wq *)object_whole(object))->queue);
}

static const struct object_class wq_class = {
    .kind = OBJECT_WQ,
    .name = "work queue",
    .offset = offsetof(struct wq_block, datapath.qp.object),
    .destroy = wq_destroy_left,
    .inherit = wq_inherit_object,
    .quiesce = wq_quiesce_object,
};

static int wq_enter(struct wq *wq, struct context *context)
{
    struct qp *qp = wq->queue;
    control_lock(context);
    int error = qpns_enter(process_node(context->process), context->process->numbers, qp_endpoint(qp), &qp->number);
    if (!error) {
        wq->ibv.handle = object_enter(context, &qp->object, &wq_class, context->device->limits.max_qp, qp->uses.parent);
        if (!wq->ibv.handle)
            error = errno, qpns_remove(context->process->numbers, qp->number);
    }
    if (!error)
        qp->uses.receive_cq->object.uses++;
    wq->ibv.wq_num = qp_flow(qp)->number = qp->number;
    control_unlock(context);
    return error;
}

static void wq_release(struct wq *wq)
{
    receive_queue_destroy(&wq->queue->receives.own);
    traffic_release(qp_flow(wq->queue));
    pthread_mutex_destroy(&wq->ibv.mutex);
    pthread_cond_destroy(&wq->ibv.cond);
    object_free(&wq->queue->object, wq);
}

struct ibv_wq *wq_create(struct ibv_context *ibv, struct ibv_wq_init_attr *attr)
{
    struct context *context = context_of(ibv);
    int error = wq_check(context, attr);
    if (error)
        return refused_null(error);
    struct wq_block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    struct wq *wq = &block->wq;
    wq->queue = &block->datapath.qp;
    lock_set_rank(&wq->queue->lock, LOCK_QP);
    wq_fill(wq, context, attr);
    struct receive_queue *receives = &wq->queue->receives.own;
    error = receive_queue_initialize(receives, attr->pd, DOMAIN_RECEIVE_QUEUE, attr->max_wr, attr->max_sge);
    if (!error)
        error = wq_enter(wq, context);
    receives->owner = (struct receive_queue_owner){"wq", "ibv_post_wq_recv", wq->queue->number};
    if (!error)
        return &wq->ibv;
    wq_release(wq);
    return refused_null(error);
}

static void enter_state(struct wq *wq, enum ibv_wq_state to)
{
    if (to == IBV_WQS_RESET) {
        engine_reset(qp_engine(wq->queue));
        receive_queue_clear(&wq->queue->receives.own);
        set_state(wq, IBV_WQS_RESET);
    } else if (to == IBV_WQS_ERR) {
        if (wq->ibv.state != IBV_WQS_ERR)
            to_error(wq);
    } else {
        engine_start_receiving(qp_engine(wq->queue), 0);
        set_state(wq, IBV_WQS_RDY);
    }
}

static const char *name_of(enum ibv_wq_state state)
{
    static const char *const names[] = {"RESET", "RDY", "ERR"};
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "none that exists";
}

/* 0, or the errno of a refusal. */
static int check_modification(const struct wq *wq, const struct ibv_wq_attr *attr)
{
    const uint32_t changeable = IBV_WQ_FLAGS_CVLAN_STRIPPING;
    enum ibv_wq_state now = wq->ibv.state;
    if (attr->attr_mask & ~(uint32_t)(IBV_WQ_ATTR_RESERVED - 1))
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "attr_mask is 0x%x", attr->attr_mask);
    if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE && attr->curr_wq_state != now)
        return refuse(EINVAL, REASON_WQ_CURRENT_STATE, "curr_wq_state is %s, and wq 0x%x is in %s",
                      name_of(attr->curr_wq_state), wq->queue->number, name_of(now));
    if (attr->attr_mask & IBV_WQ_ATTR_STATE &&
        ((unsigned)attr->wq_state > IBV_WQS_ERR || (attr->wq_state == IBV_WQS_RDY && now == IBV_WQS_ERR)))
        return refuse(EINVAL, REASON_WQ_STATE, "wq 0x%x is in %s, wq_state is %s", wq->queue->number, name_of(now),
                      name_of(attr->wq_state));
    if (attr->attr_mask & IBV_WQ_ATTR_FLAGS && attr->flags_mask & ~changeable)
        return refuse(EOPNOTSUPP, REASON_RAW_CREATE_FLAGS, "flags_mask is 0x%x", attr->flags_mask);
    return 0;
}

static void change_flags(struct engine *engine, const struct ibv_wq_attr *attr)
{
    struct engine_settings settings = *engine_settings_of(engine);
    if (!(attr->flags_mask & IBV_WQ_FLAGS_CVLAN_STRIPPING))
        return;
    settings.options &= ~(unsigned)RAW_STRIP_VLAN;
    if (attr->flags & IBV_WQ_FLAGS_CVLAN_STRIPPING)
        settings.options |= RAW_STRIP_VLAN;
    engine_configure(engine, &settings);
}

int wq_modify(struct ibv_wq *ibv, struct ibv_wq_attr *attr)
{
    struct wq *wq = wq_of(ibv);
    if (!object_is_known(&wq->queue->object, ibv->handle))
        return refused(ENOENT);
    lock_take(&wq->queue->lock);
    int error = check_modification(wq, attr);
    if (!error && attr->attr_mask & IBV_WQ_ATTR_FLAGS)
        change_flags(qp_engine(wq->queue), attr);
    if (!error && attr->attr_mask & IBV_WQ_ATTR_STATE)
        enter_state(wq, attr->wq_state);
    lock_release(&wq->queue->lock);
    if (!error && attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RESET) {
        cq_withdraw(wq->queue->uses.receive_cq, wq->queue->number);
        receive_queue_settle(&wq->queue->receives.own);
    }
    return error;
}

/* No table has the work queue, so no frame finds it; a CQ's overrun may just be failing it, under process->progress. */
static void retire(struct wq *wq)
{
    progress_quiesce(wq->queue->process);
    cq_withdraw(wq->queue->uses.receive_cq, wq->queue->number);
}

static void wait_for_acknowledgements(struct wq *wq)
{
    struct ibv_wq *ibv = &wq->ibv;
    async_withdraw(wq->queue->object.context, ibv);
    acknowledgements_wait(&wq->queue->object, &ibv->mutex, &ibv->cond, &ibv->events_completed,
                          wq->queue->told.async_fetched);
}

int wq_destroy(struct ibv_wq *ibv)
{
    struct wq *wq = wq_of(ibv);
    struct qp *qp = wq->queue;
    struct context *context = qp->object.context;
    control_lock(context);
    int error = object_leave(&qp->object, ibv->handle, qp->uses.parent);
    if (!error) {
        qpns_remove(context->process->numbers, qp->number);
        if (!context->process->inherited)
            retire(wq);
        qp->uses.receive_cq->object.uses--;
    }
    control_unlock(context);
    if (error)
        return error;
    if (!context->process->inherited)
        wait_for_acknowledgements(wq);
    wq_release(wq);
    return 0;
}
