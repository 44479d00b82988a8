#include "verbs/kinds/ethernet/rwq_ind_table.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/log.h"
#include "verbs/object/control.h"
#include "verbs/qp/qp.h"
#include "verbs/qp/wq.h"

static bool is_sound(const struct ibv_context *context, const struct ibv_rwq_ind_table_init_attr *attr)
{
    if (attr->comp_mask || !attr->ind_tbl || attr->log_ind_tbl_size > 31 || 1u << attr->log_ind_tbl_size > WQ_TABLE_MAX)
        return false;
    for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size; i++)
        if (!attr->ind_tbl[i] || attr->ind_tbl[i]->context != context)
            return false;
    return true;
}

static bool knows_all(const struct ibv_rwq_ind_table_init_attr *attr)
{
    for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size; i++)
        if (!object_is_known(&((struct wq *)attr->ind_tbl[i])->queue->object, attr->ind_tbl[i]->handle))
            return false;
    return true;
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
    bool sound = is_sound(ibv, attr);
    if (!sound || !knows_all(attr)) {
        log_reason(LOG_INFO, sound ? REASON_HANDLE : REASON_IND_TABLE, "log_ind_tbl_size %u", attr->log_ind_tbl_size);
        errno = sound ? ENOENT : EINVAL;
        return NULL;
    }
    uint32_t count = 1u << attr->log_ind_tbl_size;
    struct ind_table *table = calloc(1, sizeof *table + count * sizeof *table->entries);
    if (!table) {
        errno = ENOMEM;
        return NULL;
    }
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
        free(table);
    return error;
}

struct qp *wq_choose(const struct spread *spread, const struct ether *frame)
{
    const struct ind_table *table = spread->table;
    return table->entries[rss_of(&spread->hash, frame) & (table->count - 1)]->queue;
}
