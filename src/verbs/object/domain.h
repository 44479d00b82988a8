/* Thread domains and parent domains: ibv_alloc_td(3), ibv_alloc_parent_domain(3). Thread-safe.
 *
 * A parent domain is another name (pd_of) of the protection domain that it was made with, and adds two things. A thread
 * domain: completion queues made with it are polled without a lock, like SINGLE_THREADED ones; all other locks remain,
 * since the helper thread takes them, too. And allocators: the queues made with it are in the program's memory. */
#pragma once

#include <stdatomic.h>

#include "verbs/object/address_numbers.h"
#include "verbs/object/object.h"

/* A protection domain, or the beginning of a parent domain around one. */
struct pd {
    struct ibv_pd ibv;
    struct object object;
    struct parent_domain *parent;      /* NULL: it is a protection domain */
    struct address_numbers *addresses; /* of an EFA; or NULL */
};

extern const struct object_class pd_class;

struct td {
    struct ibv_td ibv;
    struct object object;
};

struct parent_domain {
    struct pd pd;
    struct pd *protection;
    struct td *td;                                                        /* may be NULL */
    void *(*allocate)(struct ibv_pd *, void *, size_t, size_t, uint64_t); /* NULL: no allocators */
    void (*release)(struct ibv_pd *, void *, void *, uint64_t);
    void *context;
    _Atomic uint32_t blocks; /* in use, of the program's allocator */
    bool abandoned;          /* its context is being closed: the program is not called back any more */
};

/* Memory of a queue. */
struct domain_block {
    void *memory;
    struct parent_domain *owner; /* its allocator made the memory; NULL: base/mapping.h did */
    union {
        uint64_t resource; /* with an owner: argument of `release` */
        size_t size;       /* without an owner */
    };
};

/* The protection domain of any of its names: an imported one, or a parent domain around it. */
static inline struct pd *pd_of(struct ibv_pd *ibv)
{
    if (((struct pd *)ibv)->parent)
        return ((struct pd *)ibv)->parent->protection;
    return (struct pd *)((char *)object_origin(&((struct pd *)ibv)->object) - offsetof(struct pd, object));
}

/* The object that an object made with this domain uses: the parent domain itself, or the protection domain. */
static inline struct object *pd_object(struct ibv_pd *ibv)
{
    return ((struct pd *)ibv)->parent ? &((struct pd *)ibv)->object : &pd_of(ibv)->object;
}

/* The number of the GID among the addresses of an EFA's protection domain; ADDRESS_NUMBER_NONE: it leads to none, or
 * the device is no EFA. Under any lock but an innermost one. */
static inline uint16_t pd_address_number(const struct pd *pd, const union ibv_gid *gid)
{
    return pd->addresses ? address_numbers_find(pd->addresses, gid) : ADDRESS_NUMBER_NONE;
}

static inline bool pd_is_known(const struct ibv_pd *ibv)
{
    return object_is_known(&((const struct pd *)ibv)->object, ibv->handle);
}

/* resource_type of the program's allocators; the upper 32 bits are 0, RDMA_DRIVER_UNKNOWN. */
enum domain_resource {
    DOMAIN_CQ = 1,            /* entries of a completion queue */
    DOMAIN_SEND_QUEUE = 2,    /* of a queue pair */
    DOMAIN_RECEIVE_QUEUE = 3, /* of a queue pair or work queue */
    DOMAIN_SRQ = 4,           /* entries of a shared receive queue */
};

enum { DOMAIN_ALIGNMENT = 64 }; /* of blocks, except small ones that no allocator of the program made; a cache line */

/* Allocates a thread domain. NULL and errno: EINVAL for comp_mask, ENOMEM. */
struct ibv_td *domain_allocate_td(struct ibv_context *, struct ibv_td_init_attr *);
int domain_deallocate_td(struct ibv_td *); /* EBUSY while a parent domain has it */

/* Allocates a parent domain. NULL and errno: EINVAL without a PD, with a PD or thread domain of another context, with
 * an allocator missing, with unknown bits; ENOENT for an overwritten handle of the PD; ENOMEM. A parent domain of a
 * parent domain has the same protection domain. */
struct ibv_pd *domain_allocate(struct ibv_context *, struct ibv_parent_domain_init_attr *);

/* The parent domain that the handle names; NULL: it names a protection domain, or is NULL. */
static inline struct parent_domain *domain_of(struct ibv_pd *pd)
{
    return pd ? ((struct pd *)pd)->parent : NULL;
}

/* Takes memory that is not zeroed, from the parent domain's allocators, unless it is NULL or they leave that to the
 * library (IBV_ALLOCATOR_USE_DEFAULT). 0, ENOMEM, or EINVAL when their memory isn't aligned. The program is called
 * back: no lock may be held. */
int domain_take(struct parent_domain *, enum domain_resource, size_t size, struct domain_block *);
/* Gives a block back to its allocator; does nothing for a block of zeroes. No lock may be held. */
void domain_give_back(struct domain_block *);

/* Stops calls of the program's allocators for the objects that it left in a context that is being closed: it may have
 * released the state that they need. Memory from its allocators stays the program's. */
void domain_abandon(struct context *);
