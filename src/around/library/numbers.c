#include "around/library/numbers.h"

#include <stdlib.h>

#include "base/container.h"
#include "base/hash.h"
#include "base/static_lock.h"
#include "calls/qp_types.h"

enum { BUCKETS = 1 << 12 };

struct numbered {
    struct hash_entry by_number;
    struct ibv_qp *qp;
    enum ibv_qp_state state;
    struct calls_end given;
    struct ibv_ah_attr address;
};

LOCK_STATIC(numbering, LOCK_INNERMOST);
static struct hash_entry *buckets[BUCKETS];
static struct hash all = {buckets, BUCKETS - 1};

void numbers_add(struct ibv_qp *qp)
{
    struct numbered *numbered = calloc(1, sizeof *numbered);
    if (!numbered)
        return;
    uint32_t traits = qp_type_traits(qp->qp_type);
    numbered->qp = qp;
    numbered->given.requests = traits & QP_SENDS;
    numbered->given.responds = traits & QP_RESPONDS;
    lock_take(&numbering);
    hash_add(&all, &numbered->by_number, qp->qp_num);
    lock_release(&numbering);
}

static struct numbered *find(const struct ibv_device *device, uint32_t number)
{
    lock_assert_held(&numbering);
    struct hash_entry *entry = NULL;
    while ((entry = hash_find(&all, number, entry))) {
        struct numbered *numbered = container_of(entry, struct numbered, by_number);
        if (numbered->qp->context->device == device)
            return numbered;
    }
    return NULL;
}

static struct numbered *find_qp(const struct ibv_qp *qp)
{
    struct numbered *numbered = find(qp->context->device, qp->qp_num);
    return numbered && numbered->qp == qp ? numbered : NULL;
}

struct numbered *numbers_remove(const struct ibv_qp *qp)
{
    lock_take(&numbering);
    struct numbered *numbered = find_qp(qp);
    if (numbered)
        hash_remove(&numbered->by_number);
    lock_release(&numbering);
    return numbered;
}

void numbers_end_removal(struct numbered *numbered, bool there)
{
    if (!numbered || !there) {
        free(numbered);
        return;
    }
    lock_take(&numbering);
    hash_add(&all, &numbered->by_number, numbered->qp->qp_num);
    lock_release(&numbering);
}

struct ibv_qp *numbers_find(const struct ibv_context *context, uint32_t number)
{
    lock_take(&numbering);
    const struct numbered *numbered = find(context->device, number);
    struct ibv_qp *qp = numbered ? numbered->qp : NULL;
    lock_release(&numbering);
    return qp;
}

static void merge_attributes(struct numbered *numbered, const struct ibv_qp_attr *attr, int mask)
{
    lock_assert_held(&numbering);
#define KEEP(flag, kept, member)                                                                                       \
    if (mask & IBV_QP_##flag)                                                                                          \
        numbered->kept = attr->member;
    KEEP(STATE, state, qp_state)
    KEEP(AV, address, ah_attr)
    KEEP(DEST_QPN, given.peer, dest_qp_num)
    KEEP(SQ_PSN, given.sq_psn, sq_psn)
    KEEP(RQ_PSN, given.rq_psn, rq_psn)
    KEEP(ACCESS_FLAGS, given.access, qp_access_flags)
    KEEP(PATH_MTU, given.mtu, path_mtu)
    KEEP(MAX_QP_RD_ATOMIC, given.max_rd_atomic, max_rd_atomic)
    KEEP(MAX_DEST_RD_ATOMIC, given.max_dest_rd_atomic, max_dest_rd_atomic)
#undef KEEP
}

void numbers_note(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    lock_take(&numbering);
    struct numbered *numbered = find_qp(qp);
    if (numbered)
        merge_attributes(numbered, attr, mask);
    lock_release(&numbering);
}

bool numbers_end(const struct ibv_qp *qp, struct calls_end *own, struct ibv_ah_attr *address)
{
    lock_take(&numbering);
    const struct numbered *numbered = find_qp(qp);
    bool ready = numbered && numbered->state == IBV_QPS_RTS;
    if (ready) {
        *own = numbered->given;
        *address = numbered->address;
    }
    lock_release(&numbering);
    return ready;
}

bool numbers_peer(const struct ibv_qp *qp, const struct calls_end *own, struct calls_end *peer)
{
    lock_take(&numbering);
    const struct numbered *numbered = find(qp->context->device, own->peer);
    bool ready = numbered && numbered->qp != qp && numbered->state == IBV_QPS_RTS && numbered->given.peer == qp->qp_num;
    if (ready)
        *peer = numbered->given;
    lock_release(&numbering);
    return ready;
}
