#include "verbs/create/mw_allocate.h"

#include <errno.h>
#include <stdlib.h>

#include "events/refusal.h"
#include "verbs/memory/past_regions.h"
#include "verbs/memory/quiesce.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"
#include "verbs/qp/mw_bind.h"

static void mw_destroy_left(struct object *object)
{
    struct mw *mw = object_whole(object);
    mw->ibv.handle = object->handle;
    mw_deallocate(&mw->ibv);
}

static void mw_inherit(struct object *object)
{
    struct mw *mw = object_whole(object);
    lock_inherit(&mw->lock);
}

static const struct object_class mw_class = {
    .kind = OBJECT_MW,
    .name = "memory window",
    .offset = offsetof(struct mw, object),
    .destroy = mw_destroy_left,
    .inherit = mw_inherit,
};

struct ibv_mw *mw_allocate(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct context *context = context_of(pd->context);
    if (!pd_is_known(pd))
        return refused_null(ENOENT);
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
        return refused_null(refuse(EINVAL, REASON_MW_TYPE, "type is %u", type));
    struct mw *mw = calloc(1, sizeof *mw);
    if (!mw)
        return NULL;
    lock_set_rank(&mw->lock, LOCK_INNERMOST);
    mw->region.pd = pd_of(pd);
    mw->parent = pd_object(pd);
    mw->region.kind = REGION_WINDOW;
    mw->ibv.context = pd->context;
    mw->ibv.pd = pd;
    mw->ibv.type = type;
    control_lock(context);
    int error = rkeys_enter(process_objects(context->process)->keys, &mw->region);
    mw->ibv.rkey = mw->region.key;
    if (!error)
        mw->ibv.handle = object_enter(context, &mw->object, &mw_class, context->device->limits.max_mw, mw->parent);
    if (!error && !mw->ibv.handle)
        error = errno, rkeys_remove(process_objects(context->process)->keys, &mw->region);
    control_unlock(context);
    if (!error)
        return &mw->ibv;
    free(mw);
    return refused_null(error);
}

/* Called when no thread finds the window any more. No queue pair is destroyed meanwhile, under process->control. */
static void unbind_for_good(struct mw *mw)
{
    quiesce_memory(mw->object.context->process);
    lock_take(&mw->lock);
    struct qp *qp = mw->qp;
    lock_release(&mw->lock);
    if (qp)
        lock_take(&qp->lock);
    lock_take(&mw->lock);
    mw_unbind(mw);
    lock_release(&mw->lock);
    if (qp)
        lock_release(&qp->lock);
}

int mw_deallocate(struct ibv_mw *ibv)
{
    struct mw *mw = (struct mw *)ibv;
    struct context *context = mw->object.context;
    control_lock(context);
    int error = object_leave(&mw->object, ibv->handle, mw->parent);
    if (!error) {
        past_regions_note(&mw->region);
        rkeys_remove(process_objects(context->process)->keys, &mw->region);
        if (!context->process->inherited)
            unbind_for_good(mw);
    }
    control_unlock(context);
    if (!error)
        object_free(&mw->object, mw);
    return error;
}
