/* The calls that make, change and destroy objects. */
#include <errno.h>

#include "calls/subject.h"

#include "check/destroyed/callers.h"
#include "check/layer.h"
#include "check/shadow/created.h"
#include "check/shadow/flight.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* -- making */

/* The context of an object; most structs begin with it. */
#define CONTEXT_OF(object)                                                                                             \
    _Generic((object), struct ibv_context *                                                                            \
             : (const struct ibv_context *)(const void *)(object), struct ibv_flow *                                   \
             : ((struct ibv_flow *)(void *)(object))->context, default                                                 \
             : ((struct ibv_pd *)(void *)(object))->context)

/* Calls that make objects; only the place of the call is kept. */
#define MADE_PLAINLY                                                                                                   \
    MADE(CONTEXT, struct ibv_context *, ibv_open_device, (struct ibv_device * device), (device))                       \
    MADE(PD, struct ibv_pd *, ibv_alloc_pd, (struct ibv_context * context), (context))                                 \
    MADE(TD, struct ibv_td *, ibv_alloc_td, (struct ibv_context * context, struct ibv_td_init_attr * attr),            \
         (context, attr))                                                                                              \
    MADE(XRCD, struct ibv_xrcd *, ibv_open_xrcd, (struct ibv_context * context, struct ibv_xrcd_init_attr * attr),     \
         (context, attr))                                                                                              \
    MADE(MW, struct ibv_mw *, ibv_alloc_mw, (struct ibv_pd * pd, enum ibv_mw_type type), (pd, type))                   \
    MADE(DM, struct ibv_dm *, ibv_alloc_dm, (struct ibv_context * context, struct ibv_alloc_dm_attr * attr),           \
         (context, attr))                                                                                              \
    MADE(CHANNEL, struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context * context), (context))       \
    MADE(AH, struct ibv_ah *, ibv_create_ah_from_wc,                                                                   \
         (struct ibv_pd * pd, struct ibv_wc * wc, struct ibv_grh * grh, uint8_t port), (pd, wc, grh, port))            \
    MADE(WQ, struct ibv_wq *, ibv_create_wq, (struct ibv_context * context, struct ibv_wq_init_attr * attr),           \
         (context, attr))                                                                                              \
    MADE(IND_TABLE, struct ibv_rwq_ind_table *, ibv_create_rwq_ind_table,                                              \
         (struct ibv_context * context, struct ibv_rwq_ind_table_init_attr * attr), (context, attr))                   \
    MADE(FLOW, struct ibv_flow *, ibv_create_flow, (struct ibv_qp * qp, struct ibv_flow_attr * attr), (qp, attr))      \
    MADE(COUNTERS, struct ibv_counters *, ibv_create_counters,                                                         \
         (struct ibv_context * context, struct ibv_counters_init_attr * attr), (context, attr))                        \
    MADE(CONTEXT, struct ibv_context *, mlx5dv_open_device,                                                            \
         (struct ibv_device * device, struct mlx5dv_context_attr * attr), (device, attr))                              \
    MADE(DM, struct ibv_dm *, mlx5dv_alloc_dm,                                                                         \
         (struct ibv_context * context, struct ibv_alloc_dm_attr * attr, struct mlx5dv_alloc_dm_attr * mlx5),          \
         (context, attr, mlx5))                                                                                        \
    MADE(WQ, struct ibv_wq *, mlx5dv_create_wq,                                                                        \
         (struct ibv_context * context, struct ibv_wq_init_attr * attr, struct mlx5dv_wq_init_attr * mlx5),            \
         (context, attr, mlx5))

#define MADE(KIND, type, name, parameters, arguments)                                                                  \
    static type make_##name parameters                                                                                 \
    {                                                                                                                  \
        type made = CREATED(layer_below(name) arguments, name);                                                        \
        if (made) {                                                                                                    \
            created_enter(SHADOW_##KIND, made, CONTEXT_OF(made), CALLS_SUBJECT(made));                                 \
            shadow_unlock();                                                                                           \
        }                                                                                                              \
        return made;                                                                                                   \
    }
MADE_PLAINLY
#undef MADE

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    struct ibv_pd *pd = CREATED(layer_below(ibv_alloc_parent_domain)(context, attr), ibv_alloc_parent_domain);
    if (!pd)
        return pd;
    struct shadow *shadow = created_enter(SHADOW_PD, pd, pd->context, CALLS_SUBJECT(pd));
    if (shadow)
        shadow->td = attr->td;
    shadow_unlock();
    return pd;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *ah = CREATED(layer_below(ibv_create_ah)(pd, attr), ibv_create_ah);
    if (!ah)
        return ah;
    struct shadow *shadow = created_enter(SHADOW_AH, ah, ah->context, CALLS_SUBJECT(ah));
    if (shadow)
        HOOKS_CALL(addressed, shadow, attr);
    shadow_unlock();
    return ah;
}

/* Calls that return objects that are not followed. Such an object may have the address of an earlier one that was. */
#define RETURNED_ONLY                                                                                                  \
    RETURNED(struct ibv_context *, ibv_import_device, (int cmd_fd), (cmd_fd))                                          \
    RETURNED(struct ibv_pd *, ibv_import_pd, (struct ibv_context * context, uint32_t handle), (context, handle))       \
    RETURNED(struct ibv_mr *, ibv_import_mr, (struct ibv_pd * pd, uint32_t handle), (pd, handle))                      \
    RETURNED(struct ibv_dm *, ibv_import_dm, (struct ibv_context * context, uint32_t handle), (context, handle))       \
    RETURNED(struct ibv_mr *, ibv_reg_mr_ex, (struct ibv_pd * pd, const struct newer_mr_init_attr *attr), (pd, attr))  \
    RETURNED(struct ibv_mr *, ibv_reg_buf_mr,                                                                          \
             (struct ibv_pd * pd, struct newer_buf * buffer, void *address, size_t length, int access),                \
             (pd, buffer, address, length, access))                                                                    \
    RETURNED(struct ibv_qp *, ibv_open_qp, (struct ibv_context * context, struct ibv_qp_open_attr * attr),             \
             (context, attr))

#define RETURNED(type, name, parameters, arguments)                                                                    \
    static type return_##name parameters                                                                               \
    {                                                                                                                  \
        type made = CREATED(layer_below(name) arguments, name);                                                        \
        shadow_lock();                                                                                                 \
        if (made)                                                                                                      \
            shadow_forget(made);                                                                                       \
        shadow_unlock();                                                                                               \
        return made;                                                                                                   \
    }
RETURNED_ONLY
#undef RETURNED

/* -- memory regions */

static struct ibv_mr *note_mr(struct ibv_mr *mr, void *address, size_t length, uint64_t iova, unsigned access)
{
    if (!mr)
        hooks_refused("A call that registers memory", errno);
    if (!mr)
        return mr;
    struct shadow *shadow = created_enter(SHADOW_MR, mr, mr->context, CALLS_SUBJECT(mr));
    uint64_t base = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
    if (shadow) {
        shadow_set_mr(shadow, &(struct shadow_mr){address, length, base, (int)access});
        HOOKS_CALL(memory.registered, shadow);
    }
    shadow_unlock();
    return mr;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct ibv_mr *mr = layer_below(ibv_reg_mr)(pd, address, length, access);
    return note_mr(mr, address, length, (uintptr_t)address, (unsigned)access);
}

static struct ibv_mr *reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access)
{
    struct ibv_mr *mr = layer_below(ibv_reg_mr_iova)(pd, address, length, iova, access);
    return note_mr(mr, address, length, iova, (unsigned)access);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    struct ibv_mr *mr = layer_below(ibv_reg_mr_iova2)(pd, address, length, iova, access);
    return note_mr(mr, address, length, iova, access);
}

/* The memory of these regions has no address in this process, or is not looked at. */
static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                    int access)
{
    return note_mr(layer_below(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access), NULL, length, iova, 0);
}

static struct ibv_mr *reg_mlx5_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                         int access, int mlx5_access)
{
    struct ibv_mr *mr = layer_below(mlx5dv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access, mlx5_access);
    return note_mr(mr, NULL, length, iova, 0);
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
    return note_mr(layer_below(ibv_reg_dm_mr)(pd, dm, offset, length, access), NULL, length, 0, access);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
    return note_mr(layer_below(ibv_alloc_null_mr)(pd), NULL, 0, 0, 0);
}

static int rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, int access)
{
    int result = created_result(layer_below(ibv_rereg_mr)(mr, flags, pd, address, length, access), "ibv_rereg_mr");
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_MR, mr);
    if (shadow && !result) {
        struct shadow_mr now = shadow->mr;
        if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
            now = (struct shadow_mr){address, length, (uintptr_t)address, now.access};
        if (flags & IBV_REREG_MR_CHANGE_ACCESS)
            now.access = access;
        shadow_set_mr(shadow, &now);
        shadow_name(shadow, mr->lkey);
        HOOKS_CALL(memory.registered, shadow);
    }
    shadow_unlock();
    return result;
}

/* -- queues */

static void note_cq(struct ibv_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
    struct shadow *shadow = created_enter(SHADOW_CQ, cq, cq->context, CALLS_SUBJECT(cq));
    if (shadow) {
        shadow->cq.wc_flags = attr->wc_flags;
        shadow->cq.create_flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
        shadow->cq.entries = (uint32_t)cq->cqe;
        shadow->cq.channel = attr->channel ? shadow_find(SHADOW_CHANNEL, attr->channel) : NULL;
        shadow->td = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? created_td_of(attr->parent_domain) : NULL;
        HOOKS_CALL(memory.queued, shadow);
    }
    shadow_unlock();
}

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq *cq =
        CREATED(layer_below(ibv_create_cq)(context, entries, cq_context, channel, comp_vector), ibv_create_cq);
    if (cq)
        note_cq(cq, &(struct ibv_cq_init_attr_ex){.channel = channel});
    return cq;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct ibv_cq_ex *cq = CREATED(layer_below(ibv_create_cq_ex)(context, attr), ibv_create_cq_ex);
    if (cq)
        note_cq(ibv_cq_ex_to_cq(cq), attr);
    return cq;
}

static struct ibv_cq_ex *create_efa_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
                                       struct efadv_cq_init_attr *efa, uint32_t inlen)
{
    struct ibv_cq_ex *cq = CREATED(layer_below(efadv_create_cq)(context, attr, efa, inlen), efadv_create_cq);
    if (cq)
        note_cq(ibv_cq_ex_to_cq(cq), attr);
    return cq;
}

static struct ibv_cq_ex *create_mlx5_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
                                        struct mlx5dv_cq_init_attr *mlx5)
{
    struct ibv_cq_ex *cq = CREATED(layer_below(mlx5dv_create_cq)(context, attr, mlx5), mlx5dv_create_cq);
    if (cq)
        note_cq(ibv_cq_ex_to_cq(cq), attr);
    return cq;
}

static int resize_cq(struct ibv_cq *cq, int entries)
{
    int result = created_result(layer_below(ibv_resize_cq)(cq, entries), "ibv_resize_cq");
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CQ, cq);
    if (shadow)
        shadow->cq.entries = (uint32_t)cq->cqe;
    shadow_unlock();
    return result;
}

/* Completions of an XRC SRQ's receives name a queue pair that knows no SRQ. */
static void note_srq(struct ibv_srq *srq, uint32_t sges_most, bool is_xrc)
{
    struct shadow *shadow = created_enter(SHADOW_SRQ, srq, srq->context, CALLS_SUBJECT(srq));
    if (shadow) {
        shadow->sges_most = sges_most;
        shadow->unfollowed = is_xrc;
    }
    shadow_unlock();
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *srq = CREATED(layer_below(ibv_create_srq)(pd, attr), ibv_create_srq);
    if (srq)
        note_srq(srq, attr->attr.max_sge, false);
    return srq;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    struct ibv_srq *srq = CREATED(layer_below(ibv_create_srq_ex)(context, attr), ibv_create_srq_ex);
    bool is_xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
    if (srq)
        note_srq(srq, attr->attr.max_sge, is_xrc);
    return srq;
}

/* IBV_EVENT_SRQ_LIMIT_REACHED is raised once for each time that the limit is set. */
static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    int result = created_result(layer_below(ibv_modify_srq)(srq, attr, mask), "ibv_modify_srq");
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_SRQ, srq);
    if (shadow && !result && mask & IBV_SRQ_LIMIT) {
        shadow->srq.limit = attr->srq_limit;
        shadow->srq.reached = false;
    }
    shadow_unlock();
    return result;
}

/* -- destroying */

/* Returns true if a queue pair uses the queue, which the library then refuses to destroy. */
static bool is_used(const struct shadow *shadow)
{
    const struct shadow *other;
    TAILQ_FOREACH (other, shadow_all(), siblings)
        if (other->kind == SHADOW_QP &&
            (other->qp.send_cq == shadow || other->qp.recv_cq == shadow || other->qp.srq == shadow))
            return true;
    return false;
}

struct destruction {
    struct place here;
    uint64_t serial; /* of the object that is destroyed; 0: unknown */
    uint64_t began;
    const char *inside; /* another thread's call that names the object, or NULL */
};

static void begin_destroying(struct destruction *destruction, enum shadow_kind kind, const void *handle,
                             const char *call)
{
    place_here(&destruction->here);
    hooks_see_place(&destruction->here, call);
    hooks_see_use(kind, handle, call);
    if (kind == SHADOW_QP)
        queue_pairs_see_refused((struct ibv_qp *)(uintptr_t)handle);
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, handle);
    destruction->serial = shadow ? shadow->serial : 0;
    destruction->inside = callers_other(handle);
    destruction->began = shadow_moment();
    if (shadow && !is_used(shadow))
        HOOKS_CALL(destroying, shadow);
    shadow_unlock();
}

/* Forgets all objects of a closed context, as ibv_close_device destroys what is left there. */
static void forget_all(const struct ibv_context *context)
{
    struct shadow *shadow, *next;
    for (shadow = TAILQ_FIRST(shadow_all()); shadow; shadow = next) {
        next = TAILQ_NEXT(shadow, siblings);
        if (shadow->context == context)
            shadow_remove(shadow, NULL);
    }
}

/* Notes the destruction, unless another thread has already made an object at this address. */
static void end_destroying(const struct destruction *destruction, enum shadow_kind kind, const void *handle)
{
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, handle);
    bool same = shadow && shadow->serial == destruction->serial;
    if (same && kind == SHADOW_CONTEXT)
        HOOKS_CALL(ended, handle);
    if (same)
        HOOKS_CALL(destroyed, shadow, destruction->began);
    if (same && destruction->inside)
        HOOKS_CALL(destroyed_inside, shadow, destruction->inside);
    if (same && kind == SHADOW_CONTEXT)
        forget_all(handle);
    else if (same)
        shadow_remove(shadow, &destruction->here);
    shadow_unlock();
}

#define DESTROYED_ALL                                                                                                  \
    DESTROYED(CONTEXT, ibv_close_device, struct ibv_context *)                                                         \
    DESTROYED(PD, ibv_dealloc_pd, struct ibv_pd *)                                                                     \
    DESTROYED(TD, ibv_dealloc_td, struct ibv_td *)                                                                     \
    DESTROYED(XRCD, ibv_close_xrcd, struct ibv_xrcd *)                                                                 \
    DESTROYED(MR, ibv_dereg_mr, struct ibv_mr *)                                                                       \
    DESTROYED(MW, ibv_dealloc_mw, struct ibv_mw *)                                                                     \
    DESTROYED(DM, ibv_free_dm, struct ibv_dm *)                                                                        \
    DESTROYED(CHANNEL, ibv_destroy_comp_channel, struct ibv_comp_channel *)                                            \
    DESTROYED(CQ, ibv_destroy_cq, struct ibv_cq *)                                                                     \
    DESTROYED(SRQ, ibv_destroy_srq, struct ibv_srq *)                                                                  \
    DESTROYED(QP, ibv_destroy_qp, struct ibv_qp *)                                                                     \
    DESTROYED(AH, ibv_destroy_ah, struct ibv_ah *)                                                                     \
    DESTROYED(WQ, ibv_destroy_wq, struct ibv_wq *)                                                                     \
    DESTROYED(IND_TABLE, ibv_destroy_rwq_ind_table, struct ibv_rwq_ind_table *)                                        \
    DESTROYED(FLOW, ibv_destroy_flow, struct ibv_flow *)                                                               \
    DESTROYED(COUNTERS, ibv_destroy_counters, struct ibv_counters *)

#define DESTROYED(KIND, name, type)                                                                                    \
    static int destroy_##name(type handle)                                                                             \
    {                                                                                                                  \
        struct destruction destruction;                                                                                \
        begin_destroying(&destruction, SHADOW_##KIND, handle, #name);                                                  \
        int result = created_result(layer_below(name)(handle), #name);                                                 \
        if (!result)                                                                                                   \
            end_destroying(&destruction, SHADOW_##KIND, handle);                                                       \
        return result;                                                                                                 \
    }
DESTROYED_ALL
#undef DESTROYED

void objects_fill(struct calls *calls)
{
#define MADE(KIND, type, name, parameters, arguments) calls->name = make_##name;
    MADE_PLAINLY
#undef MADE
#define RETURNED(type, name, parameters, arguments) calls->name = return_##name;
    RETURNED_ONLY
#undef RETURNED
#define DESTROYED(KIND, name, type) calls->name = destroy_##name;
    DESTROYED_ALL
#undef DESTROYED
    calls->ibv_alloc_parent_domain = alloc_parent_domain;
    calls->ibv_create_ah = create_ah;
    calls->ibv_modify_srq = modify_srq;
    calls->ibv_reg_mr = reg_mr;
    calls->ibv_reg_mr_iova = reg_mr_iova;
    calls->ibv_reg_mr_iova2 = reg_mr_iova2;
    calls->ibv_reg_dmabuf_mr = reg_dmabuf_mr;
    calls->ibv_reg_dm_mr = reg_dm_mr;
    calls->ibv_alloc_null_mr = alloc_null_mr;
    calls->ibv_rereg_mr = rereg_mr;
    calls->ibv_create_cq = create_cq;
    calls->ibv_create_cq_ex = create_cq_ex;
    calls->efadv_create_cq = create_efa_cq;
    calls->mlx5dv_create_cq = create_mlx5_cq;
    calls->mlx5dv_reg_dmabuf_mr = reg_mlx5_dmabuf_mr;
    calls->ibv_resize_cq = resize_cq;
    calls->ibv_create_srq = create_srq;
    calls->ibv_create_srq_ex = create_srq_ex;
}
