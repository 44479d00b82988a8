#include "verbs/kinds/ethernet/flow.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/log.h"
#include "verbs/kinds/ethernet/steering.h"
#include "verbs/object/control.h"
#include "verbs/object/counters.h"
#include "verbs/qp/qp.h"

enum { FLOW_FLAGS = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS };

static enum reason flow_check(const struct qp *qp, const struct ibv_flow_attr *attr)
{
    if (!(qp->traits & QP_ETHERNET))
        return REASON_FLOW_QP;
    if (attr->comp_mask || attr->port != 1 || (unsigned)attr->type > IBV_FLOW_ATTR_SNIFFER ||
        attr->flags & ~(uint32_t)FLOW_FLAGS)
        return REASON_FLOW_ATTRIBUTES;
    /* ibv_create_flow(3), note 4; what is sent is not left over by anybody, and sniffed at its receivers */
    return attr->flags && attr->type != IBV_FLOW_ATTR_NORMAL ? REASON_FLOW_ATTRIBUTES : REASON_NONE;
}

/* Sent frames go to nobody in particular, so there is nothing that a tag could tell. */
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

/* Under process->control. */
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

static struct ibv_flow *flow_refuse(enum reason reason, int error)
{
    if (reason)
        log_reason(LOG_INFO, reason, "ibv_create_flow");
    errno = error;
    return NULL;
}

struct ibv_flow *flow_create(struct ibv_qp *ibv, struct ibv_flow_attr *attr)
{
    struct qp *qp = qp_of(ibv);
    struct context *context = qp->object.context;
    if (!qp_is_known(ibv))
        return flow_refuse(REASON_NONE, ENOENT);
    enum reason reason = flow_check(qp, attr);
    if (reason)
        return flow_refuse(reason, qp->traits & QP_DATAGRAM ? EOPNOTSUPP : EINVAL);
    struct flow *flow = calloc(1, sizeof *flow - sizeof flow->rule + flow_rule_size(attr));
    if (!flow)
        return flow_refuse(REASON_NONE, ENOMEM);
    reason = flow_make(flow, qp, attr);
    if (reason) {
        free(flow);
        return flow_refuse(reason, reason == REASON_FLOW_ACTION ? EOPNOTSUPP : EINVAL);
    }
    control_lock(context);
    int error = flow_enter(flow);
    control_unlock(context);
    if (!error)
        return &flow->ibv;
    free(flow);
    return flow_refuse(REASON_NONE, error);
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
        free(flow);
    return error;
}
