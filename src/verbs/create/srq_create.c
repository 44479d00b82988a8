#include "verbs/create/srq_create.h"

#include <errno.h>
#include <stdlib.h>

#include "config/settings.h"
#include "diag/sentence.h"
#include "events/refusal.h"
#include "profile/profile.h"
#include "verbs/create/async_get.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"
#include "verbs/queue/cq_poll.h"
#include "verbs/queue/receive_queue.h"

static const struct srq_kind *srq_kind_find(enum ibv_srq_type type)
{
    for (const struct srq_kind *const *kind = srq_kinds; *kind; kind++)
        if ((*kind)->type == type)
            return *kind;
    return NULL;
}

static int check_size(const struct context *context, uint32_t max_wr)
{
    uint32_t most = context->device->limits.max_srq_wr;
    return max_wr && max_wr <= most ? 0 : refuse(EINVAL, REASON_SRQ_SIZE, "max_wr is %u, max_srq_wr %u", max_wr, most);
}

/* 0, or the errno of a refusal. */
static int check_sizes(const struct context *context, const struct ibv_srq_attr *attr)
{
    uint32_t most = context->device->limits.max_srq_sge;
    int error = check_size(context, attr->max_wr);
    if (!error && attr->max_sge > most)
        return refuse(EINVAL, REASON_SRQ_SGES, "max_sge is %u, max_srq_sge %u", attr->max_sge, most);
    return error;
}

static void srq_release(struct srq *srq)
{
    if (srq->cq && !srq->cq->process->inherited)
        cq_forget(srq->cq, &srq->queue.polled);
    if (srq->kind->release)
        srq->kind->release(srq);
    receive_queue_destroy(&srq->queue);
    free(srq->told);
    pthread_mutex_destroy(&srq->ibv.mutex);
    pthread_cond_destroy(&srq->ibv.cond);
    object_free(&srq->object, srq);
}

/* The sizes that a program gets. An adapter of mlx5 makes a queue of no receives, too; here it has one. */
static struct ibv_srq_attr round_sizes(const struct ibv_srq_attr *attr)
{
    struct ibv_srq_attr sizes = *attr;
    if (!sizes.max_wr && profile_is_mlx5(setting_profile()))
        sizes.max_wr = 1;
    return sizes;
}

/* Makes an SRQ that is not in its context yet; NULL and errno. */
static struct srq *srq_make(const struct srq_kind *kind, struct ibv_pd *pd, const struct ibv_srq_attr *attr,
                            void *srq_context)
{
    const struct ibv_srq_attr sizes = round_sizes(attr);
    int error = pd_is_known(pd) ? check_sizes(context_of(pd->context), &sizes) : refused(ENOENT);
    if (error)
        return refused_null(error);
    struct srq *srq = calloc(1, sizeof *srq);
    error = srq ? receive_queue_initialize(&srq->queue, pd, DOMAIN_SRQ, sizes.max_wr, sizes.max_sge) : ENOMEM;
    if (error) {
        free(srq);
        errno = error;
        return NULL;
    }
    srq->kind = kind;
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = srq_context;
    srq->ibv.pd = pd;
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    return srq;
}

static void count_uses(struct srq *srq, uint32_t change)
{
    if (srq->cq)
        srq->cq->object.uses += change;
    if (srq->domain)
        srq->domain->uses += change;
}

static void srq_destroy_left(struct object *object)
{
    struct srq *srq = object_whole(object);
    srq->ibv.handle = object->handle;
    srq->ibv.events_completed = srq->async_fetched;
    srq_destroy(&srq->ibv);
}

static void srq_inherit(struct object *object)
{
    struct srq *srq = object_whole(object);
    lock_inherit(&srq->queue.lock);
    if (srq->kind->inherit)
        srq->kind->inherit(srq);
}

static const struct object_class srq_class = {
    .kind = OBJECT_SRQ,
    .name = "shared receive queue",
    .offset = offsetof(struct srq, object),
    .destroy = srq_destroy_left,
    .inherit = srq_inherit,
};

/* Sets attr->srq_limit to 0: the program may have written a limit, which creation ignores (ibv_create_srq(3)). */
static struct ibv_srq *srq_enter(struct srq *srq, struct ibv_srq_attr *attr)
{
    struct context *context = context_of(srq->ibv.context);
    control_lock(context);
    int error = srq->kind->enter ? srq->kind->enter(srq) : 0;
    uint32_t most = context->device->limits.max_srq;
    srq->ibv.handle = error ? 0 : object_enter(context, &srq->object, &srq_class, most, pd_object(srq->ibv.pd));
    int full = error || srq->ibv.handle ? 0 : errno;
    if (srq->ibv.handle)
        count_uses(srq, 1);
    else if (srq->kind->remove && full)
        srq->kind->remove(srq);
    control_unlock(context);
    srq->queue.owner = (struct receive_queue_owner){"srq", "ibv_post_srq_recv", srq->ibv.handle};
    if (srq->ibv.handle) {
        attr->srq_limit = 0;
        return &srq->ibv;
    }
    srq_release(srq);
    return refused_null(full ? full : ENOMEM);
}

/* Checks that no attribute of the kind is missing, and that the handles are right. 0, or the errno of a refusal. */
static int srq_check(const struct srq_kind *kind, const struct ibv_srq_init_attr_ex *init)
{
    const struct context *context = context_of(init->pd->context);
    uint32_t missing = kind->needs & ~init->comp_mask;
    if (missing)
        return refuse(EINVAL, kind->incomplete, "comp_mask lacks %s%s%s",
                      missing & IBV_SRQ_INIT_ATTR_XRCD ? "_XRCD " : "", missing & IBV_SRQ_INIT_ATTR_CQ ? "_CQ " : "",
                      missing & IBV_SRQ_INIT_ATTR_TM ? "_TM" : "");
    if (kind->needs & IBV_SRQ_INIT_ATTR_CQ && !init->cq)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "cq is NULL");
    if (kind->needs & IBV_SRQ_INIT_ATTR_XRCD && !init->xrcd)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "xrcd is NULL");
    if (kind->needs & IBV_SRQ_INIT_ATTR_CQ &&
        (!cq_is_known(init->cq) || !object_is_here(&((struct cq *)init->cq)->object, context)))
        return refused(ENOENT);
    return 0;
}

static struct ibv_srq *create_of_kind(const struct srq_kind *kind, struct ibv_srq_init_attr_ex *init)
{
    int error = srq_check(kind, init);
    if (error)
        return refused_null(error);
    struct srq *srq = srq_make(kind, init->pd, &init->attr, init->srq_context);
    if (!srq)
        return NULL;
    if (kind->needs & IBV_SRQ_INIT_ATTR_CQ)
        srq->cq = (struct cq *)init->cq;
    error = kind->make ? kind->make(srq, init) : 0;
    if (!error)
        return srq_enter(srq, &init->attr);
    srq_release(srq);
    return refused_null(error);
}

int srq_get_number(struct ibv_srq *ibv, uint32_t *number)
{
    const struct srq *srq = (struct srq *)ibv;
    if (!srq->xrcd && !profile_is_mlx5(setting_profile()))
        return refuse(EINVAL, REASON_SRQ_NUMBER, "the " OBJECT_NAMED, srq->object.class->name, ibv->handle);
    *number = srq->xrcd ? srq->number : ibv->handle;
    return 0;
}

struct ibv_srq *srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    struct srq *srq = srq_make(srq_kind_find(IBV_SRQT_BASIC), pd, &init->attr, init->srq_context);
    return srq ? srq_enter(srq, &init->attr) : NULL;
}

struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
    const uint32_t known = IBV_SRQ_INIT_ATTR_RESERVED - 1;
    enum ibv_srq_type type = init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? init->srq_type : IBV_SRQT_BASIC;
    if (init->comp_mask & ~known)
        return refused_null(refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", init->comp_mask));
    if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !init->pd)
        return refused_null(
            refuse(EINVAL, REASON_SRQ_NO_PD, "comp_mask is 0x%x, pd %p", init->comp_mask, (void *)init->pd));
    const struct srq_kind *kind = srq_kind_find(type);
    if (!kind)
        return refused_null(
            refuse_because(EINVAL, REASON_SRQ_UNKNOWN_BITS, "srq_type is %u, which is not a type", type));
    return create_of_kind(kind, init);
}

int srq_destroy(struct ibv_srq *ibv)
{
    struct srq *srq = (struct srq *)ibv;
    struct context *context = srq->object.context;
    control_lock(context);
    int error = object_leave(&srq->object, ibv->handle, pd_object(ibv->pd));
    if (!error)
        count_uses(srq, -1u);
    if (!error && srq->kind->remove)
        srq->kind->remove(srq);
    control_unlock(context);
    if (error)
        return error;
    if (!context->process->inherited) {
        async_withdraw(context, srq);
        acknowledgements_wait(&srq->object, &ibv->mutex, &ibv->cond, &ibv->events_completed, srq->async_fetched);
    }
    srq_release(srq);
    return 0;
}

static int refuse_limit(uint32_t limit, uint32_t size)
{
    return refuse(EINVAL, REASON_SRQ_LIMIT, "srq_limit is %u, the queue has %u places", limit, size);
}

/* Arming a limit that is not reached any more raises the event at once: the program must not wait for a fall that has
 * happened already. */
static int set_limit(struct srq *srq, uint32_t limit)
{
    struct receive_queue *queue = &srq->queue;
    lock_take(&queue->lock);
    uint32_t size = queue->capacity;
    bool too_large = limit > size;
    bool reached = !too_large && queue->count < limit;
    if (!too_large) {
        queue->limit = reached ? 0 : limit;
        srq_note_limit(srq, limit);
    }
    lock_release(&queue->lock);
    if (reached)
        srq_raise(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    return too_large ? refuse_limit(limit, size) : 0;
}

/* Checks all attributes before any changes: no attribute is modified if one is invalid (ibv_modify_srq(3)). 0, or
 * the errno of a refusal. */
static int check_change(struct srq *srq, const struct ibv_srq_attr *attr, int mask)
{
    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "srq_attr_mask is 0x%x", mask);
    int error = mask & IBV_SRQ_MAX_WR ? check_size(srq->object.context, attr->max_wr) : 0;
    if (error)
        return error;
    lock_take(&srq->queue.lock);
    uint32_t size = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->queue.capacity;
    lock_release(&srq->queue.lock);
    return mask & IBV_SRQ_LIMIT && attr->srq_limit > size ? refuse_limit(attr->srq_limit, size) : 0;
}

int srq_modify(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    struct srq *srq = (struct srq *)ibv;
    int error = srq_is_known(ibv) ? check_change(srq, attr, mask) : refused(ENOENT);
    if (!error && mask & IBV_SRQ_MAX_WR)
        error = receive_queue_resize(&srq->queue, attr->max_wr);
    return !error && mask & IBV_SRQ_LIMIT ? set_limit(srq, attr->srq_limit) : error;
}

int srq_query(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    struct receive_queue *queue = &((struct srq *)ibv)->queue;
    if (!srq_is_known(ibv))
        return refused(ENOENT);
    lock_take(&queue->lock);
    *attr = (struct ibv_srq_attr){.max_wr = queue->capacity, .max_sge = queue->sge_max, .srq_limit = queue->limit};
    lock_release(&queue->lock);
    return 0;
}

int srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return receive_queue_post(&((struct srq *)ibv)->queue, wr, bad);
}
