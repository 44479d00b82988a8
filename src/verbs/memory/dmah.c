#include "verbs/memory/dmah.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "events/refusal.h"
#include "verbs/object/context.h"

enum {
    TARGET = NEWER_DMAH_CPU_ID | NEWER_DMAH_TPH_MEM_TYPE, /* CPU and kind of memory: both or neither */
    PROCESSING_HINTS = 3,                                 /* two bits of PCI Express */
    MEMORY_TYPES = 2,                                     /* volatile, persistent */
};

struct dmah {
    struct newer_dmah ibv;
    struct object object;
};

static struct dmah *dmah_of(struct newer_dmah *ibv)
{
    return (struct dmah *)ibv;
}

static bool dmah_names_no_processor(const struct newer_dmah_init_attr *attr)
{
    return (attr->comp_mask & NEWER_DMAH_CPU_ID) && attr->cpu_id >= (unsigned long)sysconf(_SC_NPROCESSORS_CONF);
}

static int dmah_check(const struct newer_dmah_init_attr *attr)
{
    uint32_t target = attr->comp_mask & TARGET;
    if (attr->comp_mask & ~(uint32_t)(TARGET | NEWER_DMAH_PH))
        return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (!(attr->comp_mask & NEWER_DMAH_PH))
        return refuse(EINVAL, REASON_DMAH_ATTRIBUTES, "comp_mask is 0x%x", attr->comp_mask);
    if (attr->ph > PROCESSING_HINTS)
        return refuse(EINVAL, REASON_DMAH_HINTS, "ph is %u", attr->ph);
    if (dmah_names_no_processor(attr))
        return refuse(EINVAL, REASON_DMAH_PROCESSOR, "cpu_id is %u", attr->cpu_id);
    if (target && target != TARGET)
        return refuse(EINVAL, REASON_DMAH_PAIR, "comp_mask is 0x%x", attr->comp_mask);
    if (target && attr->tph_mem_type >= MEMORY_TYPES)
        return refuse(EINVAL, REASON_DMAH_MEMORY, "tph_mem_type is %u", attr->tph_mem_type);
    return 0;
}

static void dmah_destroy_left(struct object *object)
{
    dmah_deallocate(object_whole(object));
}

static const struct object_class dmah_class = {
    .kind = OBJECT_DMAH,
    .name = "DMA handle",
    .offset = offsetof(struct dmah, object),
    .destroy = dmah_destroy_left,
};

struct newer_dmah *dmah_allocate(struct ibv_context *ibv, const struct newer_dmah_init_attr *attr)
{
    struct context *context = context_of(ibv);
    int error = dmah_check(attr);
    if (error)
        return refused_null(error);
    struct dmah *dmah = calloc(1, sizeof *dmah);
    if (!dmah)
        return NULL;
    dmah->ibv.context = ibv;
    object_add(context, &dmah->object, &dmah_class, UINT32_MAX, NULL);
    return &dmah->ibv;
}

int dmah_deallocate(struct newer_dmah *ibv)
{
    struct dmah *dmah = dmah_of(ibv);
    int error = object_remove(&dmah->object, dmah->object.handle, NULL);
    if (!error)
        object_free(&dmah->object, dmah);
    return error;
}

struct object *dmah_object(struct newer_dmah *ibv)
{
    return &dmah_of(ibv)->object;
}
