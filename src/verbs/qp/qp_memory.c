#include "verbs/qp/qp_memory.h"

#include "base/likely.h"
#include "link/vma.h"
#include "verbs/memory/mr.h"
#include "verbs/qp/mw_bind.h"
#include "verbs/qp/qp_engine.h"
#include "wire/foreign/foreign.h"

/* Finds memory of the null region, or memory that a driver copies, which the program keeps until the work has ended. */
cold static enum reason find_unusual(const struct region *region, const struct ibv_sge *sge, unsigned access,
                                     struct iovec *out)
{
    bool written = access & IBV_ACCESS_LOCAL_WRITE;
    bool nothing = region->kind == REGION_NULL;
    *out = (struct iovec){nothing ? vma_of_nothing(written) : region->memory + (sge->addr - region->base), sge->length};
    if (!nothing && !written)
        foreign_send(region->pd, out->iov_base, out->iov_len);
    return REASON_NONE;
}

const struct region *mr_find(const struct qp *qp, uint32_t key)
{
    return rkeys_find(process_objects(qp->process)->keys, key);
}

/* Flattened, like mr_remote, so that finding a key makes no call. */
__attribute__((flatten)) enum reason mr_local(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge,
                                              unsigned access, struct iovec *out)
{
    const struct region *region = rkeys_find(process_objects(qp->process)->keys, sge->lkey);
    if (!region || region->kind > REGION_NULL)
        return REASON_LOCAL_KEY_UNKNOWN;
    if (region->pd != pd)
        return REASON_LOCAL_PD;
    if (!region_covers(region, sge->addr, sge->length))
        return REASON_LOCAL_RANGE;
    if (access & ~region->access)
        return REASON_LOCAL_PERMISSION;
    if (unlikely(region->kind >= REGION_FOREIGN))
        return find_unusual(region, sge, access, out);
    *out = (struct iovec){region->memory + (sge->addr - region->base), sge->length};
    return REASON_NONE;
}

uint32_t mr_find_refused(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge, uint32_t count,
                         unsigned access)
{
    struct iovec ignored;
    uint32_t at = 0;
    while (at < count && (!sge[at].length || !mr_local(qp, pd, &sge[at], access, &ignored)))
        at++;
    return at;
}

static inline enum reason find_remote(const struct qp *qp, const struct region *region, uint64_t address,
                                      uint32_t length, unsigned access, struct iovec *out)
{
    if (region->pd != qp->memory.pd)
        return REASON_REMOTE_PD;
    return region_reach(region, address, length, access, out);
}

cold static enum reason find_special(const struct qp *qp, const struct region *region, uint32_t rkey, uint64_t address,
                                     uint32_t length, unsigned access, struct iovec *out)
{
    if (region->kind == REGION_REMOTE || region->kind == REGION_FOREIGN || region->kind == REGION_INDIRECT)
        return find_remote(qp, region, address, length, access, out);
    foreign_gather(NULL, false); /* a window may be taken away while its region stays */
    return region->kind == REGION_WINDOW ? mw_remote(qp, region, rkey, address, length, access, out)
                                         : REASON_REMOTE_KEY_UNKNOWN;
}

__attribute__((flatten)) enum reason mr_remote(const struct qp *qp, uint32_t rkey, uint64_t address, uint32_t length,
                                               unsigned access, struct iovec *out)
{
    const struct region *region = rkeys_find(process_objects(qp->process)->keys, rkey);
    if (!region)
        return REASON_REMOTE_KEY_UNKNOWN;
    if (unlikely(region->kind != REGION_MEMORY))
        return find_special(qp, region, rkey, address, length, access, out);
    return find_remote(qp, region, address, length, access, out);
}
