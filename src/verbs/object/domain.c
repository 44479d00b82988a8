#include "verbs/object/domain.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mapping.h"
#include "config/settings.h"
#include "diag/sentence.h"
#include "events/refusal.h"
#include "verbs/object/control.h"

static void td_destroy_left(struct object *object)
{
    domain_deallocate_td(object_whole(object));
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
    if (attr->comp_mask)
        return refused_null(refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask));
    struct td *td = calloc(1, sizeof *td);
    if (!td)
        return NULL;
    td->ibv.context = ibv;
    object_add(context, &td->object, &td_class, UINT32_MAX, NULL);
    return &td->ibv;
}

int domain_deallocate_td(struct ibv_td *ibv)
{
    struct td *td = (struct td *)ibv;
    int error = object_remove(&td->object, td->object.handle, NULL);
    if (!error)
        object_free(&td->object, td);
    return error;
}

/* 0, or the errno. */
static int domain_check(const struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
                           NEWER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED_ALLOC; /* no memory is protected here */
    if (attr->comp_mask & ~known)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (!attr->pd)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "pd is NULL");
    if (attr->pd->context != context || (attr->td && attr->td->context != context))
        return refuse(EINVAL, REASON_DOMAIN_CONTEXT, "the %s is of another context",
                      attr->pd->context != context ? "protection domain" : "thread domain");
    if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) && (!attr->alloc || !attr->free))
        return refuse(EINVAL, REASON_DOMAIN_ATTRIBUTES, "%s is NULL", attr->alloc ? "free" : "alloc");
    return pd_is_known(attr->pd) ? 0 : refused(ENOENT);
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

static void pd_destroy_left(struct object *object)
{
    struct pd *pd = object_whole(object);
    pd->ibv.handle = object->handle;
    domain_deallocate_pd(&pd->ibv);
}

static const struct object_class domain_class = {
    .kind = OBJECT_PARENT_DOMAIN,
    .name = "parent domain",
    .offset = offsetof(struct pd, object),
    .shared = true,
    .destroy = pd_destroy_left,
};

/* The public handle is the protection domain's, which is the object when the handle is imported. */
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
    int error = domain_check(ibv, attr);
    if (error)
        return refused_null(error);
    struct parent_domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return NULL;
    domain_fill(domain, attr);
    domain_enter(domain, context_of(ibv));
    return &domain->pd.ibv;
}

/* ibv_dealloc_pd(3) of a parent domain: EBUSY while objects use it. */
static int domain_deallocate(struct ibv_pd *ibv)
{
    struct parent_domain *domain = domain_of(ibv);
    struct context *context = domain->pd.object.context;
    control_lock(context);
    uint32_t blocks = atomic_load(&domain->blocks);
    int error = blocks ? refuse(EBUSY, REASON_IN_USE, "the " OBJECT_NAMED " has %u user%s",
                                domain->pd.object.class->name, ibv->handle, blocks, plural(blocks))
                       : object_leave(&domain->pd.object, ibv->handle, &domain->protection->object);
    if (!error && domain->td)
        domain->td->object.uses--;
    control_unlock(context);
    if (!error)
        object_free(&domain->pd.object, domain);
    return error;
}

/* aligned_alloc of glibc leaves up to 96 bytes around an aligned block unused, a quarter of the queue of one work
 * request: 2 MB in 10,000 queue pairs. */
static size_t alignment_of(size_t size)
{
    enum { SMALL = 1024 };
    return size < SMALL ? _Alignof(max_align_t) : DOMAIN_ALIGNMENT;
}

static int take_default(size_t size, struct domain_block *block)
{
    *block = (struct domain_block){.memory = mapping_allocate(alignment_of(size), size), .size = size};
    return block->memory ? 0 : ENOMEM;
}

/* The variables of rdma-core's library for mlx5. With HUGE a program wants huge pages or no queue; the queues here need
 * none, but where the machine has none, the program must learn that. NULL: it does not. */
static const char *lacks_huge_pages(enum domain_resource resource)
{
    static const char *const variables[] = {[DOMAIN_CQ] = "MLX_CQ_ALLOC_TYPE",
                                            [DOMAIN_SEND_QUEUE] = "MLX_QP_ALLOC_TYPE",
                                            [DOMAIN_RECEIVE_QUEUE] = "MLX_QP_ALLOC_TYPE",
                                            [DOMAIN_SRQ] = "MLX_SRQ_ALLOC_TYPE"};
    enum { HUGE_PAGE = 2 << 20 };
    const char *wanted = profile_is_mlx5(setting_profile()) ? secure_getenv(variables[resource]) : NULL;
    if (!wanted || strcmp(wanted, "HUGE") != 0)
        return NULL;
    void *page = mapping_make(HUGE_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (page == MAP_FAILED)
        return variables[resource];
    munmap(page, HUGE_PAGE);
    return NULL;
}

int domain_take(struct parent_domain *domain, enum domain_resource resource, size_t size, struct domain_block *block)
{
    *block = (struct domain_block){0};
    const char *lacking = lacks_huge_pages(resource);
    if (lacking)
        return refuse(ENOMEM, REASON_MLX5_LACKED, "huge pages, which %s wants, and this machine has none", lacking);
    if (!domain || !domain->allocate)
        return take_default(size, block);
    void *memory = domain->allocate(&domain->pd.ibv, domain->context, size, DOMAIN_ALIGNMENT, resource);
    if (memory == IBV_ALLOCATOR_USE_DEFAULT)
        return take_default(size, block);
    if (!memory)
        return refuse(ENOMEM, REASON_DOMAIN_NO_MEMORY, "%zu bytes", size);
    *block = (struct domain_block){.memory = memory, .owner = domain, .resource = resource};
    atomic_fetch_add(&domain->blocks, 1);
    if (!((uintptr_t)memory % DOMAIN_ALIGNMENT))
        return 0;
    domain_give_back(block);
    return refuse(EINVAL, REASON_DOMAIN_ALIGNMENT, "%zu bytes at %p, and the alignment asked for is %u", size, memory,
                  DOMAIN_ALIGNMENT);
}

void domain_give_back(struct domain_block *block)
{
    struct parent_domain *owner = block->owner;
    if (!owner)
        mapping_free(block->memory, block->size);
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

static void pd_inherit(struct object *object)
{
    struct pd *pd = object_whole(object);
    if (pd->addresses)
        address_numbers_inherit(pd->addresses);
}

const struct object_class pd_class = {
    .kind = OBJECT_PD,
    .name = "protection domain",
    .offset = offsetof(struct pd, object),
    .shared = true,
    .destroy = pd_destroy_left,
    .inherit = pd_inherit,
};

struct ibv_pd *domain_allocate_pd(struct ibv_context *ibv)
{
    struct context *context = context_of(ibv);
    struct pd *pd = calloc(1, sizeof *pd);
    if (!pd)
        return NULL;
    pd->ibv.context = ibv;
    bool efa = profile_is_efa(setting_profile());
    pd->addresses = efa ? address_numbers_create(context->device->limits.max_ah) : NULL;
    if (!efa || pd->addresses)
        pd->ibv.handle = object_add(context, &pd->object, &pd_class, context->device->limits.max_pd, NULL);
    if (pd->ibv.handle)
        return &pd->ibv;
    address_numbers_destroy(pd->addresses);
    free(pd);
    return NULL;
}

/* Nothing uses the domain any more. */
static void forget_addresses(struct pd *pd)
{
    address_numbers_destroy(pd->addresses);
    pd->addresses = NULL;
}

int domain_deallocate_pd(struct ibv_pd *ibv)
{
    if (domain_of(ibv))
        return domain_deallocate(ibv);
    struct pd *pd = pd_of(ibv);
    struct context *context = pd->object.context;
    if (!object_is_here(&((struct pd *)ibv)->object, context_of(ibv->context)))
        return refused(ENOENT);
    control_lock(context);
    int error = object_leave(&pd->object, ibv->handle, NULL);
    if (!error)
        forget_addresses(pd);
    if (!error)
        object_release(&((struct pd *)ibv)->object);
    control_unlock(context);
    return error;
}
