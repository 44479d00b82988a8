/* Ownership: handles, use counts, the lists of a context. All under process->control. */
#ifndef VERBS_OBJECT_LIFETIME_H
#define VERBS_OBJECT_LIFETIME_H

#include "base/uncancelled.h"
#include "verbs/object/object.h"

static inline struct context *context_of(struct ibv_context *ibv)
{
    return (struct context *)((char *)ibv - offsetof(struct context, ibv.context));
}

static inline void control_lock(struct context *context)
{
    int before = uncancelled_begin();
    mutex_take(&context->process->control);
    context->process->cancellation = before;
}

static inline void control_unlock(struct context *context)
{
    int before = context->process->cancellation;
    mutex_release(&context->process->control);
    uncancelled_end(before);
}

/* What an imported name stands for; an object itself. */
static inline struct object *object_origin(struct object *name)
{
    return name->origin ? name->origin : name;
}

/* The protection domain that any of its names stands for: an imported one, or a parent domain around it. */
static inline struct pd *pd_of(struct ibv_pd *ibv)
{
    if (((struct pd *)ibv)->parent)
        return ((struct pd *)ibv)->parent->protection;
    return (struct pd *)((char *)object_origin(&((struct pd *)ibv)->object) - offsetof(struct pd, object));
}

/* What an object made with this domain counts as a use of: the parent domain itself, or the protection domain. */
static inline struct object *pd_object(struct ibv_pd *ibv)
{
    return ((struct pd *)ibv)->parent ? &((struct pd *)ibv)->object : &pd_of(ibv)->object;
}

static inline struct mr *mr_of(struct ibv_mr *ibv)
{
    return (struct mr *)((char *)object_origin(&((struct mr *)ibv)->object) - offsetof(struct mr, object));
}

static inline struct dm *dm_of(struct ibv_dm *ibv)
{
    return (struct dm *)((char *)object_origin(&((struct dm *)ibv)->object) - offsetof(struct dm, object));
}

/* Enters an object into its context under a new handle, which it returns; 0 when the limit is reached (then errno is
 * ENOMEM). Counts a use of `parent` unless NULL. */
uint32_t object_enter(struct context *, struct object *, enum object_kind, uint32_t limit, struct object *parent);

/* Is this the handle that the program was given for the object, or for its name? Whoever overwrites the public copy has
 * an object that no call of control knows: what makes something with it, changes, asks or destroys it answers ENOENT.
 */
bool object_is_known(const struct object *name, uint32_t handle);

static inline bool pd_is_known(const struct ibv_pd *ibv)
{
    return object_is_known(&((const struct pd *)ibv)->object, ibv->handle);
}

static inline bool cq_is_known(const struct ibv_cq *ibv)
{
    return object_is_known(&((const struct cq *)ibv)->object, ibv->handle);
}

static inline bool srq_is_known(const struct ibv_srq *ibv)
{
    return object_is_known(&((const struct srq *)ibv)->object, ibv->handle);
}

static inline bool qp_is_known(const struct ibv_qp *ibv)
{
    return object_is_known(&((const struct qp *)ibv)->object, ibv->handle);
}

static inline bool mr_is_known(const struct ibv_mr *ibv)
{
    return object_is_known(&((const struct mr *)ibv)->object, ibv->handle);
}

/* Takes an object out, by any of its names (of which none ends yet: import_release). `handle` is what the public struct
 * says: ENOENT when the program overwrote it. EBUSY when something uses the object; nothing changes then. Otherwise 0,
 * and the use of `parent` is given back. */
int object_leave(struct object *, uint32_t handle, struct object *parent);

#endif
