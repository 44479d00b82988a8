#include "check/shadow/unfollow.h"

#include "check/hooks_call.h"

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

/* Of the receives of its SRQ some may end unseen from now on. */
static void drop_qp(struct shadow *qp)
{
    shadow_assert_locked();
    if (qp->qp.srq)
        qp->qp.srq->unfollowed = true;
    HOOKS_CALL(unfollowed, qp);
    shadow_forget(qp->handle);
}

void unfollow(enum shadow_kind kind, const void *handle)
{
    shadow_lock();
    struct shadow *object = shadow_find(kind, handle);
    for (struct shadow *qp; object && (qp = find_user(object));)
        drop_qp(qp);
    if (object && kind == SHADOW_QP)
        drop_qp(object);
    else if (object)
        shadow_forget(handle);
    shadow_unlock();
}

void unfollow_address(const void *handle)
{
    shadow_lock();
    shadow_forget(handle);
    shadow_unlock();
}

void unfollow_new(struct shadow *qp)
{
    shadow_assert_locked();
    drop_qp(qp);
}

bool unfollow_is_needed(const struct shadow *qp)
{
    shadow_assert_locked();
    const struct ibv_qp *handle = qp->handle;
    return !qp->qp.traits || (handle->send_cq && !qp->qp.send_cq) || (handle->recv_cq && !qp->qp.recv_cq);
}
