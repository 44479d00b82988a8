#include "around/adopt.h"

#include "around/driven.h"
#include "around/library/bottom.h"
#include "around/library/held.h"
#include "around/library/numbers.h"
#include "around/turned.h"
#include "base/container.h"

/* The bottom's own functions. */
static struct calls plain;

/* -- the members that programs call and that take no part in the data path */

#define MEMBER(table_, answer, type, member, name, work, parameters, arguments)                                        \
    static type table_##_##member parameters                                                                           \
    {                                                                                                                  \
        const struct calls *calls = bottom_around();                                                                   \
        return BOTTOM_CALL(answer, name, calls, arguments);                                                            \
    }
#define ON_OBJECT(object, type, member, name, parameters, arguments)                                                   \
    static type object##_##member parameters                                                                           \
    {                                                                                                                  \
        return calls_get(bottom_around(), name) arguments;                                                             \
    }
#include "calls/verbs.def"

/* -- the data path */

/* The library's own table need not have all members (verbs_get_ctx_op). */
#define HAS_ibv_context_ops(context, name) (context)->ops.name
#define HAS_verbs_context(context, name) verbs_get_ctx_op(context, name)
#define AT_ibv_context_ops(context, name) (context)->ops.name
#define AT_verbs_context(context, name) verbs_get_ctx(context)->name
#define KEPT_ibv_context_ops(held, name) (held)->ops.name
#define KEPT_verbs_context(held, name) (held)->table.name

CALLS_CHANGER static void change_context(struct calls_holder *holder, const struct calls_change *change)
{
    struct held *held = container_of(holder, struct held, holder);
    struct ibv_context *context = held->object;
#define FAST(table_, answer, type, name, work, parameters, arguments)                                                  \
    if (HAS_##table_(context, name))                                                                                   \
        CALLS_CHANGE(change, AT_##table_(context, name), ibv_##name, KEPT_##table_(held, name));
#include "calls/verbs.def"
}

/* A layer gets the calls for operations, too, that the queue pair was made without. */
CALLS_CHANGER static void change_qp(struct calls_holder *holder, const struct calls_change *change)
{
    struct held *held = container_of(holder, struct held, holder);
    struct ibv_qp_ex *qp = held->object;
#define BUILDER(type, name, parameters, arguments) CALLS_CHANGE(change, qp->name, ibv_##name, held->qp.name);
#include "calls/verbs.def"
}

/* A layer that watches fields gets the calls for those, too, that the queue was made without. */
CALLS_CHANGER static void change_cq(struct calls_holder *holder, const struct calls_change *change)
{
    struct held *held = container_of(holder, struct held, holder);
    struct ibv_cq_ex *cq = held->object;
#define ITERATOR(type, name, parameters, arguments)                                                                    \
    if (cq->name)                                                                                                      \
        CALLS_CHANGE(change, cq->name, ibv_##name, held->cq.name);
#define FIRST_READER(type, name, parameters, arguments) CALLS_CHANGE(change, cq->name, ibv_wc_##name, held->cq.name);
#define READER(type, name, flag, parameters, arguments) FIRST_READER(type, name, parameters, arguments)
#include "calls/verbs.def"
}

/* -- adoption, of what the program gets: an object that a library makes within a call of the program is adopted when
 * that returns it */

/* Gives the answer of a call that destroys: an object that the library did not destroy, as others use it, stays. */
static int ended(int error, struct held *held, void (*change)(struct calls_holder *, const struct calls_change *))
{
    if (error && held)
        calls_enter(&held->holder, change);
    return error;
}

/* The record of a new object; NULL: there is no object, or it is not the program's. */
static struct held *adopted(enum held_kind kind, void *object)
{
    return object && !bottom_is_inside() ? held_begin(kind, object) : NULL;
}

static void adopt_context(struct ibv_context *context)
{
    struct held *held = adopted(HELD_CONTEXT, context);
    if (!held)
        return;
    held->ops = context->ops;
#define MEMBER(table_, answer, type, member, name, work, parameters, arguments)                                        \
    if (HAS_##table_(context, member)) {                                                                               \
        KEPT_##table_(held, member) = AT_##table_(context, member);                                                    \
        AT_##table_(context, member) = table_##_##member;                                                              \
    }
#define FAST(table_, answer, type, name, work, parameters, arguments)                                                  \
    if (HAS_##table_(context, name))                                                                                   \
        KEPT_##table_(held, name) = AT_##table_(context, name);
#include "calls/verbs.def"
    struct ibv_device_attr attr;
    held->max_rd_atomic = plain.ibv_query_device(context, &attr) ? 0 : (uint32_t)attr.max_qp_rd_atom;
    calls_enter(&held->holder, change_context);
}

static struct ibv_context *open_device(struct ibv_device *device)
{
    struct ibv_context *context = plain.ibv_open_device(device);
    adopt_context(context);
    return context;
}

static struct ibv_context *import_device(int fd)
{
    struct ibv_context *context = plain.ibv_import_device(fd);
    adopt_context(context);
    return context;
}

static int close_device(struct ibv_context *context)
{
    struct held *held = held_end(HELD_CONTEXT, context);
    turned_close(context);
    return ended(plain.ibv_close_device(context), held, change_context);
}

/* A program may ask for the extended form of a queue pair several times. */
static struct ibv_qp_ex *qp_to_qp_ex(struct ibv_qp *qp)
{
    struct ibv_qp_ex *extended = plain.ibv_qp_to_qp_ex(qp);
    struct held *held = extended ? held_find(HELD_QP, extended) : NULL;
    if (!extended || (held && held->holder.change))
        return extended;
    held = held_begin(HELD_QP, extended);
    if (held) {
        held->qp = *extended;
        calls_enter(&held->holder, change_qp);
    }
    return extended;
}

static int destroy_qp(struct ibv_qp *qp)
{
    struct held *held = held_end(HELD_QP, qp);
    struct numbered *numbered = numbers_remove(qp);
    turned_leave(qp);
    int error = ended(plain.ibv_destroy_qp(qp), held, change_qp);
    turned_left(qp, !error);
    if (!error)
        driven_end(qp);
    numbers_end_removal(numbered, error);
    return error;
}

static int change_state(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    bool leaves = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
    if (leaves)
        turned_leave(qp);
    int error = plain.ibv_modify_qp(qp, attr, mask);
    if (leaves)
        turned_left(qp, !error);
    if (!error)
        numbers_note(qp, attr, mask);
    return error;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    struct ibv_pd *pd = plain.ibv_alloc_parent_domain(context, attr);
    struct held *held = adopted(HELD_PD, pd);
    const struct held *inner = held_find(HELD_PD, attr->pd);
    if (held) {
        held->protection = inner && inner->protection ? inner->protection : attr->pd;
        held->has_thread_domain = attr->td;
    }
    return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
    struct held *held = held_find(HELD_PD, pd);
    if (held)
        held->protection = NULL;
    return plain.ibv_dealloc_pd(pd);
}

static bool has_thread_domain(const struct ibv_cq_init_attr_ex *attr)
{
    const struct held *held =
        attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? held_find(HELD_PD, attr->parent_domain) : NULL;
    return held && held->protection && held->has_thread_domain;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct ibv_cq_ex *cq = plain.ibv_create_cq_ex(context, attr);
    struct held *held = adopted(HELD_CQ, cq);
    if (held) {
        held->cq = *cq;
        held->made =
            (struct calls_cq_made){.wc_flags = attr->wc_flags,
                                   .create_flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0,
                                   .has_thread_domain = has_thread_domain(attr)};
        calls_enter(&held->holder, change_cq);
    }
    return cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
    struct held *held = held_end(HELD_CQ, cq);
    driven_end(cq);
    return ended(plain.ibv_destroy_cq(cq), held, change_cq);
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
    struct ibv_wq *wq = plain.ibv_create_wq(context, attr);
    struct held *held = adopted(HELD_WQ, wq);
    if (held) {
        held->wq = *wq;
        wq->post_recv = ibv_wq_post_recv;
    }
    return wq;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    struct ibv_dm *dm = plain.ibv_alloc_dm(context, attr);
    struct held *held = adopted(HELD_DM, dm);
    if (held) {
        held->dm = *dm;
        dm->memcpy_to_dm = ibv_dm_memcpy_to_dm;
        dm->memcpy_from_dm = ibv_dm_memcpy_from_dm;
    }
    return dm;
}

void adopt_begin(struct calls *calls)
{
    plain = *calls;
    calls->ibv_open_device = open_device;
    calls->ibv_import_device = import_device;
    calls->ibv_close_device = close_device;
    calls->ibv_qp_to_qp_ex = qp_to_qp_ex;
    calls->ibv_destroy_qp = destroy_qp;
    calls->ibv_modify_qp = change_state;
    calls->ibv_create_cq_ex = create_cq_ex;
    calls->ibv_destroy_cq = destroy_cq;
    calls->ibv_create_wq = create_wq;
    calls->ibv_alloc_dm = alloc_dm;
    calls->ibv_alloc_parent_domain = alloc_parent_domain;
    calls->ibv_dealloc_pd = dealloc_pd;
}
