#include "verbs/kinds/ethernet/flow.h"

#include <errno.h>
#include <stdlib.h>

#include "events/refusal.h"
#include "verbs/kinds/ethernet/steering.h"
#include "verbs/object/control.h"
#include "verbs/object/counters.h"
#include "verbs/qp/qp.h"

enum { FLOW_FLAGS = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS };

/* 0, or the errno of a refusal. */
static int flow_check(const struct qp *qp, const struct ibv_flow_attr *attr)
{
    const int error = qp->traits & QP_DATAGRAM ? EOPNOTSUPP : EINVAL;
    if (!(qp->traits & QP_ETHERNET))
        return refuse(error, REASON_FLOW_QP, "qp 0x%x", qp->number);
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (attr->port != 1)
        return refuse(EINVAL, REASON_PORT, "port is %u", attr->port);
    if ((unsigned)attr->type > IBV_FLOW_ATTR_SNIFFER)
        return refuse(EINVAL, REASON_FLOW_ATTRIBUTES, "type is %u", attr->type);
    if (attr->flags & ~(uint32_t)FLOW_FLAGS)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "flags are 0x%x", attr->flags);
    /* ibv_create_flow(3), note 4; egress rules leave no frame to default rules, and sniffers are at the receivers */
    if (attr->flags && attr->type != IBV_FLOW_ATTR_NORMAL)
        return refuse(EINVAL, REASON_FLOW_FLAGS, "flags are 0x%x and type is %u", attr->flags, attr->type);
    return 0;
}

/* A tag is reported with a receive, so an egress rule can have no tag. */
static enum reason check_actions(const struct flow *flow)
{
    for (unsigned i = 0; i < flow->rule.counters_count; i++)
        if (flow->rule.counters[i]->context != flow->ibv.context)
            return REASON_FLOW_SPEC;
    return flow->egress && flow->rule.has_tag ? REASON_FLOW_ACTION : REASON_NONE;
}

static void flow_fill(struct flow *flow, struct qp *qp, const struct ibv_flow_attr *attr)
{
    static const uint8_t ranks[] = {
        [IBV_FLOW_ATTR_NORMAL] = FLOW_NORMAL,
        [IBV_FLOW_ATTR_ALL_DEFAULT] = FLOW_DEFAULT,
        [IBV_FLOW_ATTR_MC_DEFAULT] = FLOW_DEFAULT,
        [IBV_FLOW_ATTR_SNIFFER] = FLOW_SNIFFER,
    };
    flow->ibv.context = qp->ibv.context;
    flow->qp = qp;
    flow->device = qp->object.context->device->index;
    flow->rank = ranks[attr->type];
    flow->multicast_only = attr->type == IBV_FLOW_ATTR_MC_DEFAULT;
    flow->passes_on = attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    flow->egress = attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS;
    flow->priority = attr->priority;
}

static enum reason flow_make(struct flow *flow, struct qp *qp, const struct ibv_flow_attr *attr)
{
    flow_fill(flow, qp, attr);
    enum reason reason = flow_compile(&flow->rule, attr);
    return reason ? reason : check_actions(flow);
}

static void flow_destroy_left(struct object *object)
{
    struct flow *flow = object_whole(object);
    flow->ibv.handle = object->handle;
    flow_destroy(&flow->ibv);
}

static const struct object_class flow_class = {
    .kind = OBJECT_FLOW,
    .name = "flow",
    .offset = offsetof(struct flow, object),
    .destroy = flow_destroy_left,
};

static int flow_enter(struct flow *flow)
{
    lock_assert_held(&flow->qp->process->control);
    struct context *context = flow->qp->object.context;
    int error = steering_add(context->process, flow);
    if (error)
        return error;
    flow->ibv.handle = object_enter(context, &flow->object, &flow_class, UINT32_MAX, &flow->qp->object);
    for (unsigned i = 0; i < flow->rule.counters_count; i++)
        counters_bind(flow->rule.counters[i]);
    return 0;
}

struct ibv_flow *flow_create(struct ibv_qp *ibv, struct ibv_flow_attr *attr)
{
    struct qp *qp = qp_of(ibv);
    struct context *context = qp->object.context;
    if (!qp_is_known(ibv))
        return refused_null(ENOENT);
    int error = flow_check(qp, attr);
    if (error)
        return refused_null(error);
    struct flow *flow = calloc(1, sizeof *flow - sizeof flow->rule + flow_rule_size(attr));
    if (!flow)
        return NULL;
    enum reason reason = flow_make(flow, qp, attr);
    if (reason) {
        free(flow);
        return refused_null(refuse(reason == REASON_FLOW_ACTION ? EOPNOTSUPP : EINVAL, reason,
                                   "a flow of %u specifications", attr->num_of_specs));
    }
    control_lock(context);
    error = flow_enter(flow);
    control_unlock(context);
    if (!error)
        return &flow->ibv;
    free(flow);
    return refused_null(error);
}

int flow_destroy(struct ibv_flow *ibv)
{
    struct flow *flow = (struct flow *)ibv;
    struct context *context = flow->object.context;
    control_lock(context);
    int error = object_leave(&flow->object, ibv->handle, &flow->qp->object);
    if (!error) {
        if (!context->process->inherited)
            steering_remove(context->process, flow);
        for (unsigned i = 0; i < flow->rule.counters_count; i++)
            counters_release(flow->rule.counters[i]);
    }
    control_unlock(context);
    if (!error)
        object_free(&flow->object, flow);
    return error;
}
