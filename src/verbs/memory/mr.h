/* Memory regions and their keys: ibv_reg_mr(3) and its kin. */
#pragma once

#include <sys/uio.h>

#include "base/mapping.h"
#include "diag/diag.h"
#include "verbs/memory/foreign_regions.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/object.h"

struct mr {
    struct ibv_mr ibv;
    struct object object;
    struct object *parent; /* the object that it uses: its PD or parent domain */
    struct region region;
    struct region remote;          /* the region of the rkey, if that differs from the lkey; otherwise its key is 0 */
    struct dm *dm;                 /* the device memory that it is a part of; or NULL */
    struct object *dmah;           /* the DMA handle that it uses; or NULL */
    struct foreign_region foreign; /* if the processor can't reach it */
    void *mapped;                  /* a file's memory, for this region; or NULL */
    size_t mapped_length;
    struct mapping_avoided avoided; /* its memory, which the program may unmap before the region ends */
    _Atomic uint32_t windows;       /* bound to it; counted up under the qp->lock under which its key was found */
};

extern const struct object_class mr_class;

static inline struct mr *mr_of(struct ibv_mr *ibv)
{
    return (struct mr *)((char *)object_origin(&((struct mr *)ibv)->object) - offsetof(struct mr, object));
}

static inline bool mr_is_known(const struct ibv_mr *ibv)
{
    return object_is_known(&((const struct mr *)ibv)->object, ibv->handle);
}

/* Returns true if the bytes [address, address + length) are in the region. */
static inline bool region_covers(const struct region *region, uint64_t address, uint64_t length)
{
    return address >= region->base && length <= region->length && address - region->base <= region->length - length;
}

/* Finds memory for a request of a peer, whose access the region's domain permits. REASON_NONE and *out,
 * REASON_REMOTE_RANGE or REASON_REMOTE_PERMISSION. */
static inline enum reason region_reach(const struct region *region, uint64_t address, uint32_t length, unsigned access,
                                       struct iovec *out)
{
    if (!region_covers(region, address, length)) {
        if (length)
            return REASON_REMOTE_RANGE;
        address = region->base; /* a flush of the whole region, or no bytes */
    }
    if (access & ~region->access)
        return REASON_REMOTE_PERMISSION;
    *out = (struct iovec){region->memory + (address - region->base), length};
    return REASON_NONE;
}
