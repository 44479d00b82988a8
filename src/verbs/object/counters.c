#include "verbs/object/counters.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/sentence.h"
#include "events/refusal.h"
#include "verbs/object/control.h"

enum { COUNTER_INDICES = 1024 };

struct point {
    enum ibv_counter_description what;
    uint32_t index;
};

struct counters {
    struct ibv_counters ibv;
    struct object object; /* uses: flows that count here; points don't change meanwhile */
    struct point *points;
    uint32_t count;
    _Atomic uint64_t values[COUNTER_INDICES];
};

static struct counters *counters_of(struct ibv_counters *ibv)
{
    return (struct counters *)ibv;
}

static void counters_destroy_left(struct object *object)
{
    counters_destroy(object_whole(object));
}

static const struct object_class counters_class = {
    .kind = OBJECT_COUNTERS,
    .name = "set of counters",
    .offset = offsetof(struct counters, object),
    .destroy = counters_destroy_left,
};

struct ibv_counters *counters_create(struct ibv_context *ibv, struct ibv_counters_init_attr *attr)
{
    struct context *context = context_of(ibv);
    if (attr->comp_mask)
        return refused_null(refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask));
    struct counters *counters = calloc(1, sizeof *counters);
    if (!counters)
        return NULL;
    counters->ibv.context = ibv;
    if (object_add(context, &counters->object, &counters_class, UINT32_MAX, NULL))
        return &counters->ibv;
    free(counters);
    return NULL;
}

int counters_destroy(struct ibv_counters *ibv)
{
    struct counters *counters = counters_of(ibv);
    int error = object_remove(&counters->object, counters->object.handle, NULL);
    if (error)
        return error;
    free(counters->points);
    object_free(&counters->object, counters);
    return 0;
}

static int add_point(struct counters *counters, const struct ibv_counter_attach_attr *attr)
{
    if (counters->object.uses)
        return refuse(EBUSY, REASON_FLOW_COUNTERS_BOUND, "the counters have %u flows", counters->object.uses);
    struct point *points = realloc(counters->points, (counters->count + 1) * sizeof *points);
    if (!points)
        return ENOMEM;
    counters->points = points;
    points[counters->count++] = (struct point){attr->counter_desc, attr->index};
    return 0;
}

/* `flow` is for attaching to a flow that exists already, which is an alternative to naming the counters in its
 * specifications; those adapters that have counters offer only the latter, and so do we. */
int counters_attach(struct ibv_counters *ibv, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
    struct counters *counters = counters_of(ibv);
    if (attr->counter_desc != IBV_COUNTER_PACKETS && attr->counter_desc != IBV_COUNTER_BYTES)
        return refuse(ENOTSUP, REASON_COUNTER_POINT, "counter_desc is %u", attr->counter_desc);
    if (flow)
        return refuse(ENOTSUP, REASON_COUNTER_FLOW, "the " OBJECT_NAMED, "flow", flow->handle);
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (attr->index >= COUNTER_INDICES)
        return refuse(EINVAL, REASON_COUNTER_INDEX, "index is %u, and indices go up to %u", attr->index,
                      COUNTER_INDICES - 1);
    control_lock(counters->object.context);
    int error = add_point(counters, attr);
    control_unlock(counters->object.context);
    return error;
}

/* Indices that no point has are 0. */
int counters_read(struct ibv_counters *ibv, uint64_t *values, uint32_t count, uint32_t flags)
{
    struct counters *counters = counters_of(ibv);
    if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "flags are 0x%x", flags);
    if (!values)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "counters_value is NULL");
    for (uint32_t i = 0; i < count; i++)
        values[i] = i < COUNTER_INDICES ? atomic_load(&counters->values[i]) : 0;
    return 0;
}

void counters_bind(struct ibv_counters *ibv)
{
    counters_of(ibv)->object.uses++;
}

void counters_release(struct ibv_counters *ibv)
{
    counters_of(ibv)->object.uses--;
}

void counters_count(struct ibv_counters *ibv, uint32_t bytes)
{
    struct counters *counters = counters_of(ibv);
    for (uint32_t i = 0; i < counters->count; i++) {
        const struct point *point = &counters->points[i];
        atomic_fetch_add_explicit(&counters->values[point->index], point->what == IBV_COUNTER_PACKETS ? 1 : bytes,
                                  memory_order_relaxed);
    }
}
