#include "verbs/object/domain.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/log.h"
#include "verbs/object/control.h"

static void td_destroy_left(struct object *object)
{
    struct td *td = object_whole(object);
    domain_deallocate_td(&td->ibv);
}

static const struct object_class td_class = {
    .kind = OBJECT_TD,
    .name = "thread domain",
    .offset = offsetof(struct td, object),
    .shared = true,
    .destroy = td_destroy_left,
};

struct ibv_td *domain_allocate_td(struct ibv_context *ibv, struct ibv_td_init_attr *attr)
{
    struct context *context = context_of(ibv);
    struct td *td = attr->comp_mask ? NULL : calloc(1, sizeof *td);
    if (!td) {
        errno = attr->comp_mask ? EINVAL : ENOMEM;
        return NULL;
    }
    td->ibv.context = ibv;
    object_add(context, &td->object, &td_class, UINT32_MAX, NULL);
    return &td->ibv;
}

int domain_deallocate_td(struct ibv_td *ibv)
{
    struct td *td = (struct td *)ibv;
    int error = object_remove(&td->object, td->object.handle, NULL);
    if (!error)
        free(td);
    return error;
}

static enum reason domain_refuse(const struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
                           NEWER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED_ALLOC; /* no memory is protected here */
    if (attr->comp_mask & ~known)
        return REASON_DOMAIN_ATTRIBUTES;
    if (!attr->pd || attr->pd->context != context || (attr->td && attr->td->context != context))
        return REASON_DOMAIN_CONTEXT;
    if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) && (!attr->alloc || !attr->free))
        return REASON_DOMAIN_ATTRIBUTES;
    return REASON_NONE;
}

static void domain_fill(struct parent_domain *domain, const struct ibv_parent_domain_init_attr *attr)
{
    domain->pd.parent = domain;
    domain->protection = pd_of(attr->pd);
    domain->td = (struct td *)attr->td;
    domain->pd.ibv.context = attr->pd->context;
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
        domain->allocate = attr->alloc;
        domain->release = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
        domain->context = attr->pd_context;
}

static void domain_destroy_left(struct object *object)
{
    struct pd *pd = object_whole(object);
    pd->ibv.handle = object->handle;
    domain_deallocate(&pd->ibv);
}

static const struct object_class domain_class = {
    .kind = OBJECT_PARENT_DOMAIN,
    .name = "parent domain",
    .offset = offsetof(struct pd, object),
    .shared = true,
    .destroy = domain_destroy_left,
};

/* The public handle is that of the protection domain, which is what it stands for when it is imported. */
static void domain_enter(struct parent_domain *domain, struct context *context)
{
    struct object *object = &domain->pd.object, *protection = &domain->protection->object;
    control_lock(context);
    object_enter(context, object, &domain_class, UINT32_MAX, protection);
    object->handle = domain->pd.ibv.handle = protection->handle;
    if (domain->td)
        domain->td->object.uses++;
    control_unlock(context);
}

struct ibv_pd *domain_allocate(struct ibv_context *ibv, struct ibv_parent_domain_init_attr *attr)
{
    enum reason reason = domain_refuse(ibv, attr);
    if (!reason && !pd_is_known(attr->pd)) {
        errno = ENOENT;
        return NULL;
    }
    struct parent_domain *domain = reason ? NULL : calloc(1, sizeof *domain);
    if (!domain) {
        if (reason)
            log_reason(LOG_INFO, reason, "ibv_alloc_parent_domain");
        errno = reason ? EINVAL : ENOMEM;
        return NULL;
    }
    domain_fill(domain, attr);
    domain_enter(domain, context_of(ibv));
    return &domain->pd.ibv;
}

int domain_deallocate(struct ibv_pd *ibv)
{
    struct parent_domain *domain = domain_of(ibv);
    struct context *context = domain->pd.object.context;
    control_lock(context);
    int error = atomic_load(&domain->blocks)
                    ? EBUSY
                    : object_leave(&domain->pd.object, ibv->handle, &domain->protection->object);
    if (!error && domain->td)
        domain->td->object.uses--;
    control_unlock(context);
    if (!error)
        free(domain);
    return error;
}

static int take_default(size_t size, struct domain_block *block)
{
    size_t whole = (size + DOMAIN_ALIGNMENT - 1) & ~(size_t)(DOMAIN_ALIGNMENT - 1);
    block->memory = aligned_alloc(DOMAIN_ALIGNMENT, whole ? whole : DOMAIN_ALIGNMENT);
    return block->memory ? 0 : ENOMEM;
}

int domain_take(struct parent_domain *domain, enum domain_resource resource, size_t size, struct domain_block *block)
{
    *block = (struct domain_block){.resource = resource};
    if (!domain || !domain->allocate)
        return take_default(size, block);
    void *memory = domain->allocate(&domain->pd.ibv, domain->context, size, DOMAIN_ALIGNMENT, resource);
    if (memory == IBV_ALLOCATOR_USE_DEFAULT)
        return take_default(size, block);
    if (!memory)
        return ENOMEM;
    *block = (struct domain_block){.memory = memory, .owner = domain, .resource = resource};
    atomic_fetch_add(&domain->blocks, 1);
    if (!((uintptr_t)memory % DOMAIN_ALIGNMENT))
        return 0;
    log_reason(LOG_WARN, REASON_DOMAIN_ALIGNMENT, "%p", memory);
    domain_give_back(block);
    return EINVAL;
}

void domain_give_back(struct domain_block *block)
{
    struct parent_domain *owner = block->owner;
    if (!owner)
        free(block->memory);
    else if (!owner->abandoned)
        owner->release(&owner->pd.ibv, owner->context, block->memory, block->resource);
    if (owner)
        atomic_fetch_sub(&owner->blocks, 1);
    *block = (struct domain_block){0};
}

void domain_abandon(struct context *context)
{
    struct object *object;
    control_lock(context);
    LIST_FOREACH (object, &context->objects[OBJECT_PARENT_DOMAIN], siblings)
        ((struct parent_domain *)object_whole(object))->abandoned = true;
    control_unlock(context);
}
