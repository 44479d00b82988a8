#include "check/shadow/unfollow.h"

#include "calls/qp_types.h"

/* A queue pair that uses this object, or NULL. */
static struct shadow *find_user(const struct shadow *object)
{
    shadow_assert_locked();
    struct shadow *qp;
    TAILQ_FOREACH (qp, (struct shadow_list *)shadow_all(), siblings)
        if (qp->kind == SHADOW_QP && (qp->qp.send_cq == object || qp->qp.recv_cq == object || qp->qp.srq == object))
            break;
    return qp;
}

bool unfollow(enum shadow_kind kind, const void *handle)
{
    shadow_lock();
    struct shadow *object = shadow_find(kind, handle);
    for (struct shadow *qp; object && (qp = find_user(object));)
        shadow_forget(qp->handle);
    if (object)
        shadow_forget(handle);
    shadow_unlock();
    return object;
}

bool unfollow_is_needed(const struct shadow *qp)
{
    shadow_assert_locked();
    const struct ibv_qp *handle = qp->handle;
    return !qp_type_name(handle->qp_type) || (handle->send_cq && !qp->qp.send_cq) ||
           (handle->recv_cq && !qp->qp.recv_cq);
}
