#include "verbs/create/dm_allocate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"
#include "events/refusal.h"
#include "link/guard.h"
#include "verbs/object/control.h"

enum { LEAST_ALIGNMENT = 64, MOST_LOG_ALIGNMENT = 30 };

/* Returns 0 if the copy may be done, or the refusal's result. */
static int check_copy(const struct dm *dm, uint64_t offset, size_t length, const char *call)
{
    bool fits = offset <= dm->length && length <= dm->length - offset;
    if (fits && offset % DM_ALIGNMENT == 0 && length % DM_ALIGNMENT == 0)
        return 0;
    return result_failure(refuse_in(call, EINVAL, fits ? REASON_DM_ALIGNMENT : REASON_DM_RANGE,
                                    "%zu bytes at offset %llu, the device memory has %zu", length,
                                    (unsigned long long)offset, dm->length));
}

static int refuse_address(const void *address, size_t length, const char *call)
{
    return result_failure(refuse_in(call, EFAULT, REASON_DM_ADDRESS, "%zu bytes at %p", length, address));
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
    const struct dm *dm = dm_of(ibv);
    int error = check_copy(dm, offset, length, "ibv_memcpy_to_dm");
    if (!error && !guard_copy(dm->memory + offset, from, length))
        return refuse_address(from, length, "ibv_memcpy_to_dm");
    return error;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
    const struct dm *dm = dm_of(ibv);
    int error = check_copy(dm, offset, length, "ibv_memcpy_from_dm");
    if (!error && !guard_copy(to, dm->memory + offset, length))
        return refuse_address(to, length, "ibv_memcpy_from_dm");
    return error;
}

static int copy_to_through_layers(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
    const struct calls *around = calls_around();
    return around ? calls_get(around, ibv_memcpy_to_dm)(dm, offset, from, length) : copy_to(dm, offset, from, length);
}

static int copy_from_through_layers(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    const struct calls *around = calls_around();
    return around ? calls_get(around, ibv_memcpy_from_dm)(to, dm, offset, length) : copy_from(to, dm, offset, length);
}

void dm_bottom(struct calls *calls)
{
    calls->ibv_memcpy_to_dm = copy_to;
    calls->ibv_memcpy_from_dm = copy_from;
}

static int check_attributes(const struct ibv_alloc_dm_attr *attr)
{
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (!attr->length || attr->log_align_req > MOST_LOG_ALIGNMENT)
        return refuse(EINVAL, REASON_DM_ATTRIBUTES, "length is %zu, log_align_req %u", attr->length,
                      attr->log_align_req);
    return 0;
}

static void dm_destroy_left(struct object *object)
{
    struct dm *dm = object_whole(object);
    *newer_dm_handle(&dm->ibv) = object->handle;
    dm_free(&dm->ibv);
}

const struct object_class dm_class = {
    .kind = OBJECT_DM,
    .name = "device memory",
    .offset = offsetof(struct dm, object),
    .shared = true,
    .destroy = dm_destroy_left,
};

static int refuse_length(uint64_t length, uint64_t used, uint64_t limit)
{
    return refuse(ENOMEM, REASON_DM_EXHAUSTED, "%llu bytes, %llu of %llu are in use", (unsigned long long)length,
                  (unsigned long long)used, (unsigned long long)limit);
}

static int dm_enter(struct context *context, struct dm *dm)
{
    lock_assert_held(&context->process->control);
    uint64_t limit = context->device->limits.max_dm, used = process_objects(context->process)->dm_used;
    if (used > limit || dm->length > limit - used)
        return refuse_length(dm->length, used, limit);
    *newer_dm_handle(&dm->ibv) = object_enter(context, &dm->object, &dm_class, UINT32_MAX, NULL);
    process_objects(context->process)->dm_used += dm->length;
    return 0;
}

static int allocate(struct context *context, const struct ibv_alloc_dm_attr *attr, struct dm *dm)
{
    size_t alignment = (size_t)1 << attr->log_align_req;
    void *memory;
    if (attr->length > context->device->limits.max_dm)
        return refuse_length(attr->length, 0, context->device->limits.max_dm);
    if (posix_memalign(&memory, alignment < LEAST_ALIGNMENT ? LEAST_ALIGNMENT : alignment, attr->length))
        return ENOMEM;
    memset(memory, 0, attr->length);
    dm->memory = memory;
    dm->length = attr->length;
    dm->ibv.context = &context->ibv.context;
    dm->ibv.memcpy_to_dm = copy_to_through_layers;
    dm->ibv.memcpy_from_dm = copy_from_through_layers;
    control_lock(context);
    int error = dm_enter(context, dm);
    control_unlock(context);
    return error;
}

struct ibv_dm *dm_allocate(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
    int error = check_attributes(attr);
    struct dm *dm = error ? NULL : calloc(1, sizeof *dm);
    if (!error)
        error = dm ? allocate(context_of(ibv), attr, dm) : ENOMEM;
    if (!error)
        return &dm->ibv;
    if (dm)
        free(dm->memory);
    free(dm);
    return refused_null(error);
}

int dm_free(struct ibv_dm *ibv)
{
    struct dm *dm = dm_of(ibv);
    struct context *context = dm->object.context;
    control_lock(context);
    int error = object_leave(&dm->object, *newer_dm_handle(ibv), NULL);
    if (!error) {
        process_objects(context->process)->dm_used -= dm->length;
        free(dm->memory);
        object_release(&((struct dm *)ibv)->object);
    }
    control_unlock(context);
    return error;
}
