#include "verbs/create/cq_create.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "events/refusal.h"
#include "verbs/create/async_get.h"
#include "verbs/disturb/disturb.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq_entries.h"
#include "verbs/queue/cq_event.h"
#include "verbs/queue/cq_ex.h"
#include "verbs/queue/cq_push.h"

enum {
    CQ_CREATE_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
    CQ_COMP_MASK = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD,
};

/* Returns the size that programs see: never more than the device's limit, above which a capacity may be rounded. */
static int shown_size(const struct context *context, uint32_t capacity)
{
    uint32_t most = context->device->limits.max_cqe;
    return (int)(capacity < most ? capacity : most);
}

static int refuse_size(const struct context *context, long long entries)
{
    return refuse(EINVAL, REASON_CQ_SIZE, "%lld entries, max_cqe is %u", entries, context->device->limits.max_cqe);
}

static int check_domain(const struct context *context, struct ibv_pd *domain)
{
    if (domain_of(domain) && domain->context == &context->ibv.context)
        return 0;
    return refuse(EINVAL, REASON_CQ_PARENT_DOMAIN, "parent_domain is %s",
                  !domain              ? "NULL"
                  : !domain_of(domain) ? "a protection domain"
                                       : "one of another context");
}

/* 0, or the errno of a refusal. */
static int cq_check(const struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
    if (!attr->cqe || attr->cqe > context->device->limits.max_cqe)
        return refuse_size(context, (int32_t)attr->cqe);
    if (attr->comp_vector >= (uint32_t)context->ibv.context.num_comp_vectors)
        return refuse(EINVAL, REASON_CQ_VECTOR, "comp_vector is %d, num_comp_vectors %d", (int)attr->comp_vector,
                      context->ibv.context.num_comp_vectors);
    if (attr->comp_mask & ~(uint32_t)CQ_COMP_MASK)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    int error = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? check_domain(context, attr->parent_domain) : 0;
    if (error)
        return error;
    if (attr->channel && !object_is_here(&((struct comp_channel *)attr->channel)->object, context))
        return refused(EBADF); /* not ENOENT: kernels know a channel by its descriptor */
    if (attr->wc_flags & ~(uint64_t)CQ_WC_FLAGS)
        return refuse(EOPNOTSUPP, REASON_CQ_UNKNOWN_BITS, "wc_flags are 0x%llx", (unsigned long long)attr->wc_flags);
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~(uint32_t)CQ_CREATE_FLAGS))
        return refuse(EOPNOTSUPP, REASON_CQ_UNKNOWN_BITS, "flags are 0x%x", attr->flags);
    return 0;
}

static void cq_fill(struct cq *cq, struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
    cq->process = context->process;
    lock_set_rank(&cq->consumer, LOCK_PROGRAM);
    lock_set_rank(&cq->lock, LOCK_CQ);
    cq_event_begin(cq);
    cq->channel = (struct comp_channel *)attr->channel;
    cq->wc_flags = attr->wc_flags;
    cq->create_flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
    if (cq->domain && cq->domain->td) /* ibv_alloc_td(3): no lock against other threads of the program */
        cq->create_flags |= IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    cq->slow.takes = !cq->process->fences || cq->create_flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    cq->ibv.context = &context->ibv.context;
    cq->ibv.channel = attr->channel;
    cq->ibv.cq_context = attr->cq_context;
    cq->ibv.cqe = shown_size(context, cq->ring.capacity);
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    cq_extend(cq);
    cq_judge_push(cq);
    cq_choose_events(cq);
    cq_disturb(cq);
}

static int make_ring(struct parent_domain *domain, uint32_t capacity, struct domain_block *block)
{
    return domain_take(domain, DOMAIN_CQ, capacity * sizeof(struct completion), block);
}

static struct cq *cq_make(const struct ibv_cq_init_attr_ex *attr)
{
    struct cq *cq = aligned_alloc(_Alignof(struct cq), sizeof *cq);
    if (!cq)
        return NULL;
    memset(cq, 0, sizeof *cq);
    cq->ring.capacity = cq_ring_capacity(attr->cqe);
    cq->domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? domain_of(attr->parent_domain) : NULL;
    int error = make_ring(cq->domain, cq->ring.capacity, &cq->memory);
    if (!error) {
        cq->ring.entries = cq->memory.memory;
        return cq;
    }
    free(cq);
    errno = error;
    return NULL;
}

static void cq_release(struct cq *cq)
{
    calls_leave(&cq->calls);
    cq_disturb_end(cq);
    free(cq->told.events);
    if (cq->part)
        cq->part->release(cq->part);
    pthread_mutex_destroy(&cq->ibv.mutex);
    pthread_cond_destroy(&cq->ibv.cond);
    domain_give_back(&cq->memory);
    object_free(&cq->object, cq);
}

static void cq_destroy_left(struct object *object)
{
    struct cq *cq = object_whole(object);
    cq->ibv.handle = object->handle;
    cq->ibv.comp_events_completed = cq->events.fetched;
    cq->ibv.async_events_completed = cq->async_fetched;
    cq_destroy(&cq->ibv);
}

/* The thread that forked keeps a batch of completions that it had begun. */
static void cq_inherit(struct object *object)
{
    struct cq *cq = object_whole(object);
    if (atomic_load(&cq->batch_owner) != (uintptr_t)pthread_self()) {
        atomic_store(&cq->batch_owner, 0);
        lock_inherit(&cq->consumer);
    }
    atomic_store(&cq->taking, false);
    atomic_store(&cq->stopped, false);
    lock_inherit(&cq->lock);
}

static const struct object_class cq_class = {
    .kind = OBJECT_CQ,
    .name = "completion queue",
    .offset = offsetof(struct cq, object),
    .destroy = cq_destroy_left,
    .inherit = cq_inherit,
};

static int cq_enter(struct cq *cq, struct context *context)
{
    struct object *parent = cq->domain ? &cq->domain->pd.object : NULL;
    control_lock(context);
    cq->ibv.handle = object_enter(context, &cq->object, &cq_class, context->device->limits.max_cq, parent);
    int error = cq->ibv.handle ? 0 : errno;
    if (!error && cq->channel) {
        cq->channel->object.uses++;
        cq->channel->ibv.refcnt++;
    }
    control_unlock(context);
    return error;
}

struct ibv_cq_ex *cq_create(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr)
{
    struct context *context = context_of(ibv);
    int error = cq_check(context, attr);
    if (error)
        return refused_null(error);
    struct cq *cq = cq_make(attr);
    if (!cq)
        return NULL;
    cq_fill(cq, context, attr);
    error = cq_enter(cq, context);
    if (!error)
        return &cq->extended;
    cq_release(cq);
    return refused_null(error);
}

/* ibv_destroy_cq(3): every event that was fetched must have been acknowledged. */
static void forget_events(struct cq *cq)
{
    struct ibv_cq *ibv = &cq->ibv;
    lock_take(&cq->process->progress);
    if (cq->part)
        cq->part->retire(cq);
    cq_event_forget(cq);
    cq_disturb_stop(cq);
    lock_release(&cq->process->progress);
    uint32_t fetched = cq->channel ? comp_channel_withdraw(cq->channel, cq) : 0;
    async_withdraw(cq->object.context, cq);
    acknowledgements_wait(&cq->object, &ibv->mutex, &ibv->cond, &ibv->comp_events_completed, fetched);
    acknowledgements_wait(&cq->object, &ibv->mutex, &ibv->cond, &ibv->async_events_completed, cq->async_fetched);
}

int cq_destroy(struct ibv_cq *ibv)
{
    struct cq *cq = (struct cq *)ibv;
    struct context *context = context_of(ibv->context);
    control_lock(context);
    int error = object_leave(&cq->object, ibv->handle, cq->domain ? &cq->domain->pd.object : NULL);
    if (!error && cq->channel) {
        cq->channel->object.uses--;
        cq->channel->ibv.refcnt--;
    }
    control_unlock(context);
    if (error)
        return error;
    if (!cq->process->inherited)
        forget_events(cq);
    cq_release(cq);
    return 0;
}

/* Moves the entries to a ring, whose positions begin anew. */
static void use_ring(struct cq *cq, const struct domain_block *memory, uint32_t capacity)
{
    bool notable = cq_holds_notable(cq);
    cq_ring_move(&cq->ring, memory->memory, capacity);
    cq->notable_end = notable ? cq_ring_tail(&cq->ring) : 0;
    cq->unreported = 0; /* an event too many may be raised, never too few */
    cq->memory = *memory;
    cq->ibv.cqe = shown_size(cq->object.context, capacity);
}

int cq_resize(struct ibv_cq *ibv, int entries)
{
    struct cq *cq = (struct cq *)ibv;
    struct context *context = cq->object.context;
    if (!cq_is_known(ibv))
        return refused(ENOENT);
    if (entries < 1 || (uint32_t)entries > context->device->limits.max_cqe)
        return refuse_size(context, entries);
    uint32_t capacity = cq_ring_capacity((uint32_t)entries);
    struct domain_block memory, spare;
    int error = make_ring(cq->domain, capacity, &memory);
    if (error)
        return error;
    cq_stop(cq);
    uint32_t count = cq_ring_count(&cq->ring);
    bool fits = count <= (uint32_t)entries; /* as asked for, not as rounded */
    spare = fits ? cq->memory : memory;
    if (fits)
        use_ring(cq, &memory, capacity);
    cq_resume(cq);
    domain_give_back(&spare);
    return fits ? 0 : refuse(EINVAL, REASON_CQ_HOLDS_MORE, "%d entries, %u completions wait", entries, count);
}
