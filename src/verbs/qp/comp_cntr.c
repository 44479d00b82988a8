#include "verbs/qp/comp_cntr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/sentence.h"
#include "events/refusal.h"
#include "events/words.h"
#include "verbs/object/control.h"
#include "verbs/queue/srq.h"

/* Operations of the peer are not counted: a WRITE need not pass through the code of the responder. */
enum { COUNTERS = 65536, COUNTED = NEWER_COUNT_SEND | NEWER_COUNT_RECV | NEWER_COUNT_READ | NEWER_COUNT_WRITE };

struct comp_cntr {
    struct newer_comp_cntr ibv;
    struct object object; /* uses: operations of queue pairs that count here */
    bool bytes;
    _Atomic uint64_t values[2]; /* by enum comp_cntr_value */
};

static struct comp_cntr *comp_cntr_of(struct newer_comp_cntr *ibv)
{
    return (struct comp_cntr *)ibv;
}

static bool comp_cntr_is_known(const struct newer_comp_cntr *ibv)
{
    return object_is_known(&((const struct comp_cntr *)ibv)->object, ibv->handle);
}

int comp_cntr_query_caps(struct ibv_context *ibv, struct newer_comp_cntr_caps *caps, size_t size)
{
    const struct newer_comp_cntr_caps all = {
        .max_value = UINT64_MAX, .max_counters = COUNTERS, .supported_qp_attach_ops = COUNTED};
    memset(caps, 0, size);
    memcpy(caps, &all, size < sizeof all ? size : sizeof all);
    return 0;
}

static int comp_cntr_check(const struct newer_comp_cntr_init_attr *attr)
{
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (attr->flags)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "flags are 0x%x", attr->flags);
    if (attr->type > NEWER_COUNT_BYTES)
        return refuse(EINVAL, REASON_COMP_CNTR_ATTRIBUTES, "type is %u", attr->type);
    return 0;
}

static int comp_cntr_end(struct comp_cntr *counter, uint32_t handle)
{
    int error = object_remove(&counter->object, handle, NULL);
    if (!error)
        object_free(&counter->object, counter);
    return error;
}

static void comp_cntr_destroy_left(struct object *object)
{
    comp_cntr_end(object_whole(object), object->handle);
}

static const struct object_class comp_cntr_class = {
    .kind = OBJECT_COMP_CNTR,
    .name = "completion counter",
    .offset = offsetof(struct comp_cntr, object),
    .destroy = comp_cntr_destroy_left,
};

struct newer_comp_cntr *comp_cntr_create(struct ibv_context *ibv, const struct newer_comp_cntr_init_attr *attr)
{
    struct context *context = context_of(ibv);
    int error = comp_cntr_check(attr);
    if (error)
        return refused_null(error);
    struct comp_cntr *counter = calloc(1, sizeof *counter);
    if (!counter)
        return NULL;
    counter->ibv.context = ibv;
    counter->bytes = attr->type == NEWER_COUNT_BYTES;
    counter->ibv.handle = object_add(context, &counter->object, &comp_cntr_class, COUNTERS, NULL);
    if (counter->ibv.handle)
        return &counter->ibv;
    free(counter);
    return refused_null(ENOMEM);
}

int comp_cntr_destroy(struct newer_comp_cntr *ibv)
{
    return comp_cntr_end(comp_cntr_of(ibv), ibv->handle);
}

int comp_cntr_set(struct newer_comp_cntr *ibv, enum comp_cntr_value which, uint64_t value)
{
    if (!comp_cntr_is_known(ibv))
        return refused(ENOENT);
    atomic_store_explicit(&comp_cntr_of(ibv)->values[which], value, memory_order_release);
    return 0;
}

int comp_cntr_add(struct newer_comp_cntr *ibv, enum comp_cntr_value which, uint64_t amount)
{
    if (!comp_cntr_is_known(ibv))
        return refused(ENOENT);
    atomic_fetch_add_explicit(&comp_cntr_of(ibv)->values[which], amount, memory_order_release);
    return 0;
}

/* Acquire: a thread that reads here that a receive has ended finds its data. */
int comp_cntr_read(struct newer_comp_cntr *ibv, enum comp_cntr_value which, uint64_t *value)
{
    if (!comp_cntr_is_known(ibv))
        return refused(ENOENT);
    *value = atomic_load_explicit(&comp_cntr_of(ibv)->values[which], memory_order_acquire);
    return 0;
}

/* Returns the operations that can be counted: receives only if the queue pair completes them, and not a work queue, a
 * shared XRC queue pair or a tag-matching SRQ. */
static uint32_t countable(const struct qp *qp)
{
    bool receives_itself = !qp->xrc.shared && !qp->ethernet.spread && !(qp->uses.srq && qp->uses.srq->tags);
    return receives_itself ? COUNTED : COUNTED & ~(uint32_t)NEWER_COUNT_RECV;
}

static int check_attachment(const struct qp *qp, const struct comp_cntr *counter,
                            const struct newer_qp_attach_comp_cntr_attr *attr)
{
    uint8_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (attr->op_mask & ~countable(qp))
        return refuse(EOPNOTSUPP, REASON_COMP_CNTR_OPERATIONS, "op_mask is 0x%x, and this queue pair counts 0x%x",
                      attr->op_mask, countable(qp));
    if (!attr->op_mask)
        return refuse(EINVAL, REASON_COMP_CNTR_NOTHING, "op_mask is 0");
    if (qp->object.context != counter->object.context)
        return refuse(EINVAL, REASON_OTHER_CONTEXT, "the " OBJECT_NAMED, counter->object.class->name,
                      counter->ibv.handle);
    if (state != IBV_QPS_RESET && state != IBV_QPS_INIT)
        return refuse(EINVAL, REASON_COMP_CNTR_STATE, "qp 0x%x is in %s", qp->number, words_state(state));
    if (attr->op_mask & qp->counting.operations)
        return refuse(EBUSY, REASON_COMP_CNTR_TAKEN, "op_mask is 0x%x, and other counters count 0x%x of it already",
                      attr->op_mask, attr->op_mask & qp->counting.operations);
    return 0;
}

static void attach(struct qp *qp, struct comp_cntr *counter, uint32_t operations)
{
    lock_assert_held(&qp->lock);
    qp->counting.operations |= operations;
    for (unsigned bit = 0; bit < QP_COUNTED; bit++)
        if (operations & 1u << bit) {
            qp->counting.counters[bit] = counter;
            counter->object.uses++;
        }
}

int comp_cntr_attach(struct ibv_qp *ibv, struct newer_comp_cntr *counter,
                     const struct newer_qp_attach_comp_cntr_attr *attr)
{
    struct qp *qp = (struct qp *)ibv;
    struct context *context = qp->object.context;
    if (!qp_is_known(ibv) || !comp_cntr_is_known(counter))
        return refused(ENOENT);
    control_lock(context);
    lock_take(&qp->lock);
    int error = check_attachment(qp, comp_cntr_of(counter), attr);
    if (!error)
        attach(qp, comp_cntr_of(counter), attr->op_mask);
    lock_release(&qp->lock);
    control_unlock(context);
    return error;
}

void comp_cntr_detach(struct qp *qp)
{
    lock_assert_held(&qp->process->control);
    for (unsigned bit = 0; bit < QP_COUNTED; bit++)
        if (qp->counting.operations & 1u << bit)
            qp->counting.counters[bit]->object.uses--;
    qp->counting.operations = 0;
}

static uint32_t operation_of(enum ibv_wc_opcode opcode)
{
    switch (opcode) {
    case IBV_WC_SEND:
    case IBV_WC_TSO:
        return NEWER_COUNT_SEND;
    case IBV_WC_RDMA_READ:
        return NEWER_COUNT_READ;
    case IBV_WC_RDMA_WRITE:
        return NEWER_COUNT_WRITE;
    default:
        return opcode & IBV_WC_RECV ? NEWER_COUNT_RECV : 0;
    }
}

void comp_cntr_count(struct qp *qp, enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length)
{
    lock_assert_held(&qp->lock);
    uint32_t operation = operation_of(opcode);
    if (!(qp->counting.operations & operation))
        return;
    struct comp_cntr *counter = qp->counting.counters[__builtin_ctz(operation)];
    bool failed = status != IBV_WC_SUCCESS;
    atomic_fetch_add_explicit(&counter->values[failed], counter->bytes && !failed ? length : 1, memory_order_release);
}
