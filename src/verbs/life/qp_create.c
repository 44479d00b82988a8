#include "verbs/life/qp_create.h"

#include <errno.h>

#include "adverse/adverse.h"
#include "config/link_layer.h"
#include "config/settings.h"
#include "events/refusal.h"
#include "process/rest.h"
#include "profile/profile.h"
#include "runtime/qpns.h"
#include "verbs/disturb/disturb.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_groups.h"
#include "verbs/life/qp_modify.h"
#include "verbs/life/qp_retire.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"
#include "verbs/qp/comp_cntr.h"
#include "verbs/qp/kind.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "verbs/send/qp_ex.h"

enum {
    COMMON_MASK =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS,
    SPREAD_MASK = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH, /* receives are in work queues */
};

static uint64_t send_ops(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
}

static uint32_t create_flags(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
}

static const struct srq *srq_of(const struct ibv_qp_init_attr_ex *attr)
{
    return (const struct srq *)attr->srq;
}

/* Returns the CQ in which an SRQ completes its receives, whatever recv_cq is; NULL: recv_cq counts. */
static struct cq *receive_cq_of_srq(const struct ibv_qp_init_attr_ex *attr)
{
    return attr->srq ? srq_of(attr)->cq : NULL;
}

static bool knows_cq(const struct context *context, struct ibv_cq *cq)
{
    return !cq || (cq_is_known(cq) && object_is_here(&((struct cq *)cq)->object, context));
}

static bool knows_pd(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
    bool given = attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->pd;
    return !given || (pd_is_known(attr->pd) && object_is_here(&((struct pd *)attr->pd)->object, context));
}

/* Returns true if all objects that `attr` names are of this context, with a handle that was not overwritten.
 * qp_raw.c checks the table of work queues. */
static bool knows_all(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
    return knows_pd(context, attr) && knows_cq(context, attr->send_cq) && knows_cq(context, attr->recv_cq) &&
           (!attr->srq || (srq_is_known(attr->srq) && object_is_here(&((struct srq *)attr->srq)->object, context)));
}

/* Returns the bits that at least one kind has. */
static uint32_t known_mask(void)
{
    uint32_t mask = COMMON_MASK;
    for (const struct qp_kind *const *kind = qp_kinds; *kind; kind++)
        mask |= (*kind)->init_mask;
    return mask;
}

static int refuse_type(enum ibv_qp_type type)
{
    if (qp_type_is_of_driver(type))
        return refuse(EOPNOTSUPP, REASON_QP_TYPE, "qp_type is %u", type);
    return refuse(EOPNOTSUPP, REASON_QP_TYPE_UNKNOWN, "qp_type is %u", type);
}

/* Refuses an unknown type, and the bits and flags that the kind does not have. */
static int check_for_kind(const struct context *context, const struct qp_kind *kind,
                          const struct ibv_qp_init_attr_ex *attr)
{
    if (attr->comp_mask & ~known_mask())
        return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (!kind)
        return refuse_type(attr->qp_type);
    if (kind->traits & QP_ETHERNET && link_layer_is_infiniband(context->device))
        return refuse(EOPNOTSUPP, REASON_RAW_ON_INFINIBAND, "port 1 is one of InfiniBand");
    if (!qp_ex_offers(kind, send_ops(attr)))
        return refuse(EOPNOTSUPP, REASON_QP_SEND_OPS, "send_ops_flags are 0x%llx, and this type has 0x%llx",
                      (unsigned long long)send_ops(attr), (unsigned long long)kind->builders);
    if (create_flags(attr) & ~kind->create_flags)
        return refuse(EOPNOTSUPP, REASON_RAW_CREATE_FLAGS, "create_flags are 0x%x", create_flags(attr));
    if (attr->comp_mask & ~(COMMON_MASK | kind->init_mask))
        return refuse(EINVAL, REASON_QP_INIT_MASK, "qp_type is %u, and comp_mask 0x%x", attr->qp_type, attr->comp_mask);
    return kind->refuse ? kind->refuse(context, attr) : 0;
}

struct bound {
    enum reason reason;
    const char *name, *limit_name;
    uint32_t value, limit;
};

/* Refuses the first value that is larger than its limit. */
static int check_bounds(const struct bound *bounds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bounds[i].value > bounds[i].limit)
            return refuse(EINVAL, bounds[i].reason, "%s is %u, %s %u", bounds[i].name, bounds[i].value,
                          bounds[i].limit_name, bounds[i].limit);
    return 0;
}

static int check_capacities(const struct limits *limits, const struct ibv_qp_cap *cap, bool receives)
{
    const struct bound bounds[] = {
        {REASON_QP_SIZE, "max_send_wr", "max_qp_wr", cap->max_send_wr, limits->max_qp_wr},
        {REASON_QP_SGES, "max_send_sge", "max_sge", cap->max_send_sge, limits->max_sge},
        {REASON_QP_INLINE, "max_inline_data", "the device's limit", cap->max_inline_data, limits->max_inline},
        {REASON_QP_SIZE, "max_recv_wr", "max_qp_wr", cap->max_recv_wr, limits->max_qp_wr},
        {REASON_QP_SGES, "max_recv_sge", "max_sge", cap->max_recv_sge, limits->max_sge},
    };
    enum { OF_SENDS = 3, ALL = sizeof bounds / sizeof *bounds };
    return check_bounds(bounds, receives ? ALL : OF_SENDS);
}

/* Checks the CQs, the SRQ and the capacities of the queue pair to be. */
static int check_queues(const struct limits *limits, const struct qp_kind *kind, const struct ibv_qp_init_attr_ex *attr)
{
    bool receives = kind->traits & QP_RECEIVES, spreads = attr->comp_mask & SPREAD_MASK;
    if (!spreads && !attr->send_cq)
        return refuse(EINVAL, REASON_QP_NO_CQ, "send_cq is NULL");
    if (!spreads && receives && !attr->recv_cq && !receive_cq_of_srq(attr))
        return refuse(EINVAL, REASON_QP_NO_CQ, "recv_cq is NULL");
    if (attr->srq && !receives)
        return refuse_because(EINVAL, REASON_XRC_SRQ_TYPE,
                              "srq is given, and a queue pair of qp_type %u receives nothing", attr->qp_type);
    enum reason reason = attr->srq && srq_of(attr)->kind->refuse ? srq_of(attr)->kind->refuse(kind) : REASON_NONE;
    if (reason)
        return refuse(EINVAL, reason, "qp_type is %u", attr->qp_type);
    return check_capacities(limits, &attr->cap, receives && !attr->srq);
}

/* Checks the attributes of a new queue pair. Returns 0, or the errno of a refusal. */
static int qp_check(const struct context *context, const struct qp_kind *kind, const struct ibv_qp_init_attr_ex *attr)
{
    int error = check_for_kind(context, kind, attr);
    if (error || kind->traits & QP_SHARED)
        return error;
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
        return refuse(EINVAL, REASON_QP_NO_PD, "comp_mask is 0x%x, pd %p", attr->comp_mask, (void *)attr->pd);
    error = check_queues(&context->device->limits, kind, attr);
    return error ? error : knows_all(context, attr) ? 0 : refused(ENOENT);
}

static uint32_t power_of_two(uint32_t least)
{
    uint32_t value = 1;
    while (value < least)
        value *= 2;
    return value;
}

/* A slot takes the SGEs or the inline data, whichever is larger; whole cache lines, so that no two slots share one. */
static int make_send_queue(struct qp *qp, struct send_queue *queue)
{
    size_t room = qp->cap.max_send_sge * sizeof(struct ibv_sge), atomic_write = 8;
    if (room < atomic_write)
        room = atomic_write;
    static const struct srq_kind none;
    const struct srq_kind *srq = qp->uses.srq ? qp->uses.srq->kind : &none;
    if (room < qp->cap.max_inline_data)
        room = qp->cap.max_inline_data;
    if (room < qp->cap.max_send_sge * sizeof(struct ibv_sge) + qp->ethernet.max_tso_header)
        room = qp->cap.max_send_sge * sizeof(struct ibv_sge) + qp->ethernet.max_tso_header;
    if (room < srq->work_room)
        room = srq->work_room;
    if (room < PAYLOAD_PIECES_MAX * sizeof(struct ibv_sge) && profile_has_queues(setting_profile()))
        room =
            PAYLOAD_PIECES_MAX * sizeof(struct ibv_sge); /* work in memory may have more elements than was asked for */
    queue->stride = (uint32_t)((sizeof(struct send_wqe) + room + 63) & ~(size_t)63);
    queue->capacity = power_of_two(qp->cap.max_send_wr + srq->work_places);
    if (qp->traits & QP_UNORDERED)
        queue->capacity *= 2; /* half of them may be holes between work that waits (transport/srd/works.c) */
    uint32_t staged = srq->work_places && qp->batch.exists ? power_of_two(qp->cap.max_send_wr) : 0;
    size_t size = (size_t)queue->stride * (queue->capacity + staged);
    int error = domain_take(domain_of(qp->ibv.pd), DOMAIN_SEND_QUEUE, size, &qp_datapath(qp)->memory);
    queue->memory = qp_datapath(qp)->memory.memory;
    if (!error && staged)
        qp_datapath(qp)->staged = (struct send_queue){.memory = queue->memory + size - (size_t)queue->stride * staged,
                                                      .stride = queue->stride,
                                                      .capacity = staged};
    return error;
}

static void initialize_engine(struct qp *qp, const struct send_queue *queue)
{
    if (qp->kind->initialize_engine)
        qp->kind->initialize_engine(qp, queue);
    else
        qp_door_create(qp, (enum service)qp->kind->service, queue);
}

static int make_queues(struct qp *qp)
{
    struct send_queue queue = {0};
    int error = make_send_queue(qp, &queue);
    if (!error && qp_has_receives(qp)) {
        error = receive_queue_initialize(&qp->receives.own, qp->ibv.pd, DOMAIN_RECEIVE_QUEUE, qp->cap.max_recv_wr,
                                         qp->cap.max_recv_sge);
        qp->receives.queue = qp->ethernet.spread ? NULL : &qp->receives.own;
    } else if (qp->uses.srq)
        qp->receives.queue = &qp->uses.srq->queue;
    if (!error)
        initialize_engine(qp, &queue);
    return error;
}

/* Returns the inline data that fits into the space of the SGEs, as on most adapters: some programs use it unasked. */
static uint32_t unasked_inline_room(const struct ibv_qp_cap *cap)
{
    const struct profile *profile = setting_profile();
    uint32_t room = cap->max_send_sge * (uint32_t)sizeof(struct ibv_sge);
    return profile ? (uint32_t)profile_value(profile, PROFILE_spare_inline, room) : room;
}

static uint32_t inline_room(const struct ibv_qp_cap *cap, const struct limits *limits)
{
    uint32_t room = unasked_inline_room(cap);
    if (adverse_shows(ADVERSE_NO_INLINE)) {
        adverse_note(ADVERSE_NO_INLINE);
        return cap->max_inline_data;
    }
    room = room < limits->max_inline ? room : limits->max_inline;
    return cap->max_inline_data > room ? cap->max_inline_data : room;
}

static void fill_users(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    if (qp->traits & QP_SHARED)
        return;
    qp->memory.pd = pd_of(attr->pd);
    qp->uses.parent = pd_object(attr->pd);
    qp->uses.send_cq = (struct cq *)attr->send_cq;
    qp->uses.srq = (struct srq *)attr->srq;
    qp->memory.receive_pd = qp->uses.srq ? pd_of(qp->uses.srq->ibv.pd) : qp->memory.pd;
    qp->cap = attr->cap;
    if (qp->cap.max_send_wr == 1 && !setting_profile())
        qp->cap.max_send_wr = 2; /* for programs that leave one completion unpolled (docs/reference/choices.md) */
    if (qp->traits & QP_RECEIVES)
        qp->uses.receive_cq = receive_cq_of_srq(attr) ? receive_cq_of_srq(attr) : (struct cq *)attr->recv_cq;
    if (!qp_has_receives(qp))
        qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
}

static const struct owner_operations *owner_of(const struct qp *qp)
{
    const struct srq *srq = qp->uses.srq;
    return srq && srq->kind->owner ? srq->kind->owner : qp->kind->owner;
}

static void qp_fill(struct qp *qp, const struct qp_kind *kind, struct context *context,
                    const struct ibv_qp_init_attr_ex *attr)
{
    qp->process = context->process;
    qp->path.port = 1u << context->device->index;
    qp_set_kind(qp, kind);
    qp_forget_attributes(qp);
    qp->create_flags = create_flags(attr);
    qp->state = IBV_QPS_RESET;
    qp->sends.signal_all = attr->sq_sig_all;
    fill_users(qp, attr);
    qp->cap.max_inline_data = inline_room(&qp->cap, &context->device->limits);
    qp_owner(qp)->operations = owner_of(qp);
    qp_begin_endpoint(qp, context->device);
    qp_record(qp);
    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) /* also with no flag, as the drivers of rdma-core have it */
        qp_ex_fill(qp);
    struct ibv_qp *ibv = &qp->ibv;
    ibv->context = &context->ibv.context;
    ibv->qp_context = attr->qp_context;
    ibv->pd = qp->memory.pd ? attr->pd : NULL;
    ibv->send_cq = qp->uses.send_cq ? attr->send_cq : NULL;
    ibv->recv_cq = qp->uses.receive_cq ? (struct ibv_cq *)qp->uses.receive_cq : NULL;
    ibv->srq = attr->srq;
    ibv->state = IBV_QPS_RESET;
    ibv->qp_type = attr->qp_type;
    pthread_mutex_init(&ibv->mutex, NULL);
    pthread_cond_init(&ibv->cond, NULL);
}

/* Counts (1) or ends (-1) a use of the objects besides the PD that can't be destroyed before the queue pair. */
static void use_others(const struct qp *qp, int step)
{
    struct object *others[] = {
        qp->uses.send_cq ? &qp->uses.send_cq->object : NULL,
        qp->uses.receive_cq ? &qp->uses.receive_cq->object : NULL,
        qp->uses.srq ? &qp->uses.srq->object : NULL,
        qp->uses.table,
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i])
            others[i]->uses += (uint32_t)step;
}

void qp_inherit(struct qp *qp)
{
    lock_inherit(&qp->lock);
    lock_inherit(&qp->batch.lock);
    lock_inherit(&qp->receives.own.lock);
}

void qp_quiesce(struct qp *qp)
{
    lock_take(&qp->lock);
    qp_end_lateness(qp);
    lock_release(&qp->lock);
}

static void qp_destroy_left(struct object *object)
{
    struct qp *qp = object_whole(object);
    qp->ibv.handle = object->handle;
    qp->ibv.events_completed = qp->told.async_fetched;
    qp_leave_groups(qp);
    qp_destroy(&qp->ibv);
}

static void qp_inherit_object(struct object *object)
{
    qp_inherit(qp_real(object_whole(object)));
}

static void qp_quiesce_object(struct object *object)
{
    qp_quiesce(qp_real(object_whole(object)));
}

const struct object_class qp_class = {
    .kind = OBJECT_QP,
    .name = "queue pair",
    .offset = offsetof(struct qp, object),
    .destroy = qp_destroy_left,
    .inherit = qp_inherit_object,
    .quiesce = qp_quiesce_object,
};

/* Enters the queue pair with its handle into its context; a shared one gets other handles by kind->hand_out. */
static int qp_enter(struct qp *qp, struct context *context)
{
    struct process *process = context->process;
    control_lock(context);
    int error = qpns_enter(process_node(process), process->numbers, qp_endpoint(qp), &qp->number);
    qp->object.context = context;
    if (!error && qp->uses.parent) {
        uint32_t most = context->device->limits.max_qp;
        qp->ibv.handle = object_enter(context, &qp->object, &qp_class, most, qp->uses.parent);
        if (!qp->ibv.handle)
            error = errno, qpns_remove(process->numbers, qp->number);
    }
    if (!error)
        use_others(qp, 1);
    qp->ibv.qp_num = qp_flow(qp)->number = qp->number;
    control_unlock(context);
    return error;
}

struct ibv_qp *qp_create(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr)
{
    return qp_create_of(ibv, qp_kind_find(attr->qp_type), attr);
}

struct ibv_qp *qp_create_of(struct ibv_context *ibv, const struct qp_kind *kind, struct ibv_qp_init_attr_ex *attr)
{
    struct context *context = context_of(ibv);
    int error = qp_check(context, kind, attr);
    if (error)
        return refused_null(error);
    struct qp *qp = qp_allocate();
    if (!qp)
        return NULL;
    lock_set_rank(&qp->lock, LOCK_QP);
    lock_set_rank(&qp->batch.lock, LOCK_PROGRAM);
    qp_fill(qp, kind, context, attr);
    error = kind->fill ? kind->fill(qp, attr) : 0;
    if (!error)
        error = make_queues(qp);
    if (!error)
        error = qp_enter(qp, context);
    qp->receives.own.owner = (struct receive_queue_owner){"qp", "ibv_post_recv", qp->number};
    if (!error) {
        attr->cap = qp->cap;
        return kind->hand_out ? kind->hand_out(qp, attr) : &qp->ibv;
    }
    qp_release(qp);
    return refused_null(error);
}

int qp_destroy(struct ibv_qp *ibv)
{
    struct qp *qp = qp_of(ibv);
    struct context *context = qp->object.context;
    if (qp->kind->close)
        return qp->kind->close(qp);
    rest_look_first(context->process);
    control_lock(context);
    int error = object_leave(&qp->object, ibv->handle, qp->uses.parent);
    if (!error) {
        qp_retire(qp);
        comp_cntr_detach(qp);
        use_others(qp, -1);
    }
    control_unlock(context);
    if (error)
        return error;
    qp_forget_peer(qp);
    qp_wait_for_acknowledgements(qp);
    qp_release(qp);
    return 0;
}

int qp_reserve_number(struct ibv_context *ibv, uint32_t *number)
{
    struct context *context = context_of(ibv);
    control_lock(context);
    int error = qpns_reserve(process_node(context->process), context->process->numbers, number);
    control_unlock(context);
    return error;
}

bool qp_unreserve_number(struct ibv_context *ibv, uint32_t number)
{
    struct context *context = context_of(ibv);
    control_lock(context);
    bool was = qpns_unreserve(context->process->numbers, number);
    control_unlock(context);
    return was;
}
