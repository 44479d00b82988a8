#include "verbs/qp/mw_bind.h"

#include "verbs/memory/indirect.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/mw.h"
#include "verbs/memory/rkeys.h"
#include "verbs/qp/qp_engine.h"

enum {
    ACCESS_WRITES = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
    /* programs also ask for local write, which means nothing here */
    ACCESS_KNOWN = ACCESS_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE,
    KEY_OF_PROGRAM = 0xff, /* of a key, the bits that the program chooses when it binds the window */
};

void mw_unbind(struct mw *mw)
{
    lock_assert_held(&mw->lock);
    if (mw->mr)
        atomic_fetch_sub(&mw->mr->windows, 1);
    if (mw->qp)
        LIST_REMOVE(mw, bound);
    mw->mr = NULL;
    mw->qp = NULL;
    mw->region.length = 0;
    mw->region.access = 0;
}

/* The window's identity and all parameters are copied: the program may destroy the region before the work's turn. */
enum reason mw_describe_bind(struct send_wqe *work, struct ibv_mw *mw, uint32_t rkey,
                             const struct ibv_mw_bind_info *info)
{
    const struct mw *window = (struct mw *)mw;
    const struct mr *mr = info->mr ? mr_of(info->mr) : NULL;
    if (info->mw_access_flags & ~(unsigned)ACCESS_KNOWN)
        return REASON_BIND_FLAGS;
    if (mr && !region_is_memory(&mr->region))
        return REASON_BIND_NULL;
    work->sge_count = 0;
    work->length = 0;
    work->address = mw;
    work->rkey = (window->region.key & ~(uint32_t)KEY_OF_PROGRAM) | (rkey & KEY_OF_PROGRAM);
    work->immediate = mr ? mr->region.key : 0;
    work->remote_address = info->addr;
    work->compare_or_add = mr ? info->length : 0;
    work->owner_value = info->mw_access_flags;
    work->swap = mw->rkey;
    mw->rkey = work->rkey;
    return REASON_NONE;
}

void mw_forget_bind(const struct send_wqe *work)
{
    if (work->opcode == IBV_WR_BIND_MW)
        ((struct ibv_mw *)(uintptr_t)work->address)->rkey = (uint32_t)work->swap;
}

/* Finds the region to bind to (IBA C10-72 to C10-75). *mr is NULL when a window of type 1 is unbound. */
static enum reason find_region(const struct qp *qp, const struct send_wqe *work, struct mr **mr)
{
    uint64_t length = work->compare_or_add;
    struct region *region = work->immediate ? rkeys_find(process_objects(qp->process)->keys, work->immediate) : NULL;
    *mr = NULL;
    if (!length)
        return REASON_NONE;
    if (!region || !region_is_memory(region) || region->pd != qp->memory.pd)
        return REASON_BIND_REGION;
    if (!(region->access & IBV_ACCESS_MW_BIND))
        return REASON_BIND_ACCESS;
    if ((work->owner_value & ACCESS_WRITES) && !(region->access & IBV_ACCESS_LOCAL_WRITE))
        return REASON_BIND_LOCAL_WRITE;
    if (!region_covers(region, work->remote_address, length))
        return REASON_BIND_RANGE;
    *mr = (struct mr *)((char *)region - offsetof(struct mr, region));
    return REASON_NONE;
}

static enum reason check_window(const struct mw *mw, const struct qp *qp, const struct send_wqe *work)
{
    if (mw->region.pd != qp->memory.pd)
        return REASON_BIND_WINDOW;
    if (mw->ibv.type == IBV_MW_TYPE_1)
        return REASON_NONE;
    if (mw->mr)
        return REASON_BIND_BOUND;
    return work->compare_or_add ? REASON_NONE : REASON_BIND_EMPTY;
}

/* An access of another queue pair that has found a type 1 window as it was may still be copying after this; it began
 * before the bind. The region itself can't end meanwhile: deregistering waits for all queue pairs. */
static void bind(struct mw *mw, struct qp *qp, const struct send_wqe *work, struct mr *mr)
{
    mw_unbind(mw);
    mw->region.key = work->rkey;
    if (!mr)
        return;
    atomic_fetch_add(&mr->windows, 1);
    mw->mr = mr;
    mw->region.length = work->compare_or_add;
    mw->region.access = work->owner_value;
    mw->region.base = work->owner_value & IBV_ACCESS_ZERO_BASED ? 0 : work->remote_address;
    mw->region.memory = mr->region.memory + (work->remote_address - mr->region.base);
    if (mw->ibv.type == IBV_MW_TYPE_1)
        return;
    mw->qp = qp;
    LIST_INSERT_HEAD(&qp->memory.windows, mw, bound);
}

enum reason mw_bind(struct qp *qp, const struct send_wqe *work)
{
    lock_assert_held(&qp->lock);
    struct mr *mr;
    struct region *region = rkeys_at(process_objects(qp->process)->keys, work->rkey);
    if (!region || region->kind != REGION_WINDOW || mw_of(region) != work->address)
        return REASON_BIND_WINDOW;
    enum reason reason = find_region(qp, work, &mr);
    struct mw *mw = mw_of(region);
    lock_take(&mw->lock);
    if (!reason)
        reason = check_window(mw, qp, work);
    if (!reason)
        bind(mw, qp, work, mr);
    lock_release(&mw->lock);
    return reason;
}

enum reason mw_invalidate(struct qp *qp, uint32_t rkey, bool by_peer)
{
    struct region *region = rkeys_find(process_objects(qp->process)->keys, rkey);
    struct indirect *indirect = indirect_find(process_objects(qp->process)->keys, rkey);
    if (indirect)
        return indirect_invalidate(indirect, qp->memory.pd, by_peer);
    if (!region || region->kind != REGION_WINDOW)
        return REASON_INVALIDATE_KEY;
    struct mw *mw = mw_of(region);
    lock_take(&mw->lock);
    bool may = mw->qp == qp && region->key == rkey;
    if (may)
        mw_unbind(mw);
    lock_release(&mw->lock);
    return may ? REASON_NONE : REASON_INVALIDATE_KEY;
}

static enum reason look_into(const struct mw *mw, const struct qp *qp, uint32_t rkey, uint64_t address, uint32_t length,
                             unsigned access, struct iovec *out)
{
    const struct region *region = &mw->region;
    if (!mw->mr || region->key != rkey)
        return REASON_REMOTE_KEY_UNKNOWN;
    if (region->pd != qp->memory.pd)
        return REASON_REMOTE_PD;
    if (mw->qp && mw->qp != qp)
        return REASON_REMOTE_WINDOW_QP;
    return region_reach(region, address, length, access, out);
}

enum reason mw_remote(const struct qp *qp, const struct region *region, uint32_t rkey, uint64_t address,
                      uint32_t length, unsigned access, struct iovec *out)
{
    struct mw *mw = mw_of(region);
    lock_take(&mw->lock);
    enum reason reason = look_into(mw, qp, rkey, address, length, access, out);
    lock_release(&mw->lock);
    return reason;
}

void mw_leave(struct qp *qp)
{
    struct mw *mw;
    while ((mw = LIST_FIRST(&qp->memory.windows))) {
        lock_take(&mw->lock);
        mw_unbind(mw);
        lock_release(&mw->lock);
    }
}
