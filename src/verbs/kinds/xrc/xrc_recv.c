#include "verbs/kinds/xrc/xrc_recv.h"

#include <errno.h>

#include "events/refusal.h"
#include "runtime/qpns.h"
#include "verbs/kinds/xrc/xrcd.h"
#include "verbs/life/qp_modify.h"
#include "verbs/life/qp_retire.h"
#include "verbs/object/control.h"
#include "verbs/qp/qp_datapath.h"

static struct qp *make_handle(struct context *context, const struct qp_kind *kind, struct xrcd *xrcd, void *qp_context)
{
    struct qp *handle = qp_allocate();
    if (!handle)
        return NULL;
    handle->process = context->process;
    qp_set_kind(handle, kind);
    handle->uses.parent = &xrcd->object;
    struct ibv_qp *ibv = &handle->ibv;
    ibv->context = &context->ibv.context;
    ibv->qp_context = qp_context;
    ibv->qp_type = kind->type;
    pthread_mutex_init(&ibv->mutex, NULL);
    pthread_cond_init(&ibv->cond, NULL);
    return handle;
}

static void release_handle(struct qp *handle)
{
    pthread_mutex_destroy(&handle->ibv.mutex);
    pthread_cond_destroy(&handle->ibv.cond);
    object_free(&handle->object, handle);
}

static int attach(struct qp *handle, struct qp *real)
{
    lock_assert_held(&context_of(handle->ibv.context)->process->control);
    struct context *context = context_of(handle->ibv.context);
    uint32_t most = context->device->limits.max_qp;
    handle->ibv.handle = object_enter(context, &handle->object, &qp_class, most, handle->uses.parent);
    if (!handle->ibv.handle)
        return errno;
    handle->ibv.qp_num = handle->number = real->number;
    lock_take(&real->lock);
    handle->xrc.shared = real;
    handle->ibv.state = real->state;
    LIST_INSERT_HEAD(&real->xrc.handles, handle, xrc.handle);
    lock_release(&real->lock);
    return 0;
}

int xrc_recv_refuse(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
        return refuse(EINVAL, REASON_XRC_NO_DOMAIN, "comp_mask is 0x%x", attr->comp_mask);
    return object_is_here(&((struct xrcd *)attr->xrcd)->object, context) ? 0 : refused(ENOENT);
}

int xrc_recv_fill(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    qp->xrc.domain = ((struct xrcd *)attr->xrcd)->domain;
    return 0;
}

struct ibv_qp *xrc_recv_create(struct qp *real, const struct ibv_qp_init_attr_ex *attr)
{
    struct context *context = real->object.context;
    struct qp *handle = make_handle(context, real->kind, (struct xrcd *)attr->xrcd, attr->qp_context);
    if (handle && attr->comp_mask & IBV_QP_INIT_ATTR_PD)
        handle->ibv.pd = attr->pd; /* not used here; librdmacm looks there for the domain of an identifier */
    control_lock(context);
    int error = handle ? attach(handle, real) : ENOMEM;
    if (error)
        qp_retire(real);
    control_unlock(context);
    if (!error)
        return &handle->ibv;
    if (handle)
        release_handle(handle);
    qp_release(real);
    return refused_null(error);
}

static int check_open(const struct context *context, const struct ibv_qp_open_attr *attr)
{
    const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    struct xrcd *xrcd = (struct xrcd *)attr->xrcd;
    if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
        return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if ((attr->comp_mask & needed) != needed)
        return refuse(EINVAL, REASON_QP_OPEN_ATTRIBUTES, "comp_mask is 0x%x", attr->comp_mask);
    if (!xrcd)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "xrcd is NULL");
    const struct qp_kind *kind = qp_kind_find(attr->qp_type);
    if (!kind || !(kind->traits & QP_SHARED))
        return refuse(EINVAL, REASON_QP_OPEN_TYPE, "qp_type is %u", attr->qp_type);
    return object_is_here(&xrcd->object, context) ? 0 : refused(ENOENT);
}

struct ibv_qp *xrc_recv_open(struct ibv_context *ibv, struct ibv_qp_open_attr *attr)
{
    struct context *context = context_of(ibv);
    struct xrcd *xrcd = (struct xrcd *)attr->xrcd;
    int error = check_open(context, attr);
    if (error)
        return refused_null(error);
    struct qp *handle = make_handle(context, qp_kind_find(attr->qp_type), xrcd,
                                    attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
    if (!handle)
        return NULL;
    control_lock(context);
    struct endpoint *endpoint = qpns_find(context->process->numbers, attr->qp_num);
    struct qp *real = endpoint ? qp_of_endpoint(endpoint) : NULL;
    bool found = real && real->xrc.domain == xrcd->domain;
    error = found ? attach(handle, real) : 0;
    control_unlock(context);
    if (found && !error)
        return &handle->ibv;
    release_handle(handle);
    return refused_null(found ? error : refuse(EINVAL, REASON_XRC_QP_OPEN, "qp_num is 0x%x", attr->qp_num));
}

/* Removes a handle. True: it was the last, and the queue pair has ended. */
static bool detach(struct qp *handle)
{
    lock_assert_held(&handle->process->control);
    struct qp *real = handle->xrc.shared;
    lock_take(&real->lock);
    LIST_REMOVE(handle, xrc.handle);
    struct qp *other = LIST_FIRST(&real->xrc.handles);
    if (other)
        real->object.context = other->object.context; /* its limits hold; the old context may be about to be closed */
    lock_release(&real->lock);
    if (!other)
        qp_retire(real);
    return !other;
}

int xrc_recv_close(struct qp *handle)
{
    struct qp *real = handle->xrc.shared;
    struct context *context = handle->object.context;
    control_lock(context);
    int error = object_leave(&handle->object, handle->ibv.handle, handle->uses.parent);
    bool last = !error && detach(handle);
    control_unlock(context);
    if (error)
        return error;
    if (last) {
        qp_forget_peer(real);
        qp_release(real);
    }
    qp_wait_for_acknowledgements(handle);
    release_handle(handle);
    return 0;
}
