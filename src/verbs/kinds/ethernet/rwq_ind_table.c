#include "verbs/kinds/ethernet/rwq_ind_table.h"

#include <errno.h>
#include <stdlib.h>

#include "events/refusal.h"
#include "verbs/object/control.h"
#include "verbs/qp/qp.h"
#include "verbs/qp/wq.h"

static int check_entry(const struct ibv_context *context, const struct ibv_wq *wq, uint32_t index)
{
    if (!wq)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "ind_tbl[%u] is NULL", index);
    if (wq->context != context)
        return refuse(EINVAL, REASON_OTHER_CONTEXT, "the work queue ind_tbl[%u]", index);
    return object_is_known(&((const struct wq *)wq)->queue->object, wq->handle) ? 0 : refused(ENOENT);
}

/* 0, or the errno of a refusal. */
static int ind_table_check(const struct ibv_context *context, const struct ibv_rwq_ind_table_init_attr *attr)
{
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (!attr->ind_tbl)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "ind_tbl is NULL");
    if (attr->log_ind_tbl_size > 31 || 1u << attr->log_ind_tbl_size > WQ_TABLE_MAX)
        return refuse_because(EINVAL, REASON_IND_TABLE, "log_ind_tbl_size is %u, and a table has up to %u entries",
                              attr->log_ind_tbl_size, WQ_TABLE_MAX);
    int error = 0;
    for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size && !error; i++)
        error = check_entry(context, attr->ind_tbl[i], i);
    return error;
}

static void ind_table_destroy_left(struct object *object)
{
    struct ind_table *table = object_whole(object);
    table->ibv.ind_tbl_handle = (int)object->handle;
    rwq_ind_table_destroy(&table->ibv);
}

static const struct object_class ind_table_class = {
    .kind = OBJECT_IND_TABLE,
    .name = "indirection table",
    .offset = offsetof(struct ind_table, object),
    .destroy = ind_table_destroy_left,
};

static uint32_t wq_table_enter(struct ind_table *table, struct context *context)
{
    control_lock(context);
    uint32_t handle = object_enter(context, &table->object, &ind_table_class, UINT32_MAX, NULL);
    for (uint32_t i = 0; handle && i < table->count; i++)
        table->entries[i]->queue->object.uses++;
    control_unlock(context);
    return handle;
}

struct ibv_rwq_ind_table *rwq_ind_table_create(struct ibv_context *ibv, struct ibv_rwq_ind_table_init_attr *attr)
{
    int error = ind_table_check(ibv, attr);
    if (error)
        return refused_null(error);
    uint32_t count = 1u << attr->log_ind_tbl_size;
    struct ind_table *table = calloc(1, sizeof *table + count * sizeof *table->entries);
    if (!table)
        return NULL;
    table->count = count;
    for (uint32_t i = 0; i < count; i++)
        table->entries[i] = (struct wq *)attr->ind_tbl[i];
    table->ibv.context = ibv;
    table->ibv.ind_tbl_handle = table->ibv.ind_tbl_num = (int)wq_table_enter(table, context_of(ibv));
    if (table->ibv.ind_tbl_handle)
        return &table->ibv;
    free(table);
    return NULL;
}

int rwq_ind_table_destroy(struct ibv_rwq_ind_table *ibv)
{
    struct ind_table *table = (struct ind_table *)ibv;
    struct context *context = table->object.context;
    control_lock(context);
    int error = object_leave(&table->object, (uint32_t)ibv->ind_tbl_handle, NULL);
    for (uint32_t i = 0; !error && i < table->count; i++)
        table->entries[i]->queue->object.uses--;
    control_unlock(context);
    if (!error)
        object_free(&table->object, table);
    return error;
}

struct qp *wq_choose(const struct spread *spread, const struct ether *frame)
{
    const struct ind_table *table = spread->table;
    return table->entries[rss_of(&spread->hash, frame) & (table->count - 1)]->queue;
}
