/* Work requests name the peer's memory and the length of inline data rightly, and builders are called in turn. */
#include <infiniband/verbs.h>

#include "base/likely.h"
#include "check/hooks.h"

cold static void judge_atomic(const struct shadow *qp, const struct wqe *wqe)
{
    enum { OPERAND = 8 };
    if (wqe->remote % OPERAND)
        finding_add(HOOKS_ABOUT(RULE_ATOMIC_MISALIGNED, qp, .posted = wqe->posted),
                    "A %s of queue pair 0x%x names the remote address 0x%llx, which is no multiple of 8 "
                    "(wr_id %llu)",
                    wqe_name(wqe), qp->number, (unsigned long long)wqe->remote, (unsigned long long)wqe->wr_id);
    if (!wqe->rkey)
        finding_add(HOOKS_ABOUT(RULE_ATOMIC_KEY_ZERO, qp, .posted = wqe->posted),
                    "A %s of queue pair 0x%x names the remote key 0, which no region has: the key of an "
                    "atomic is wr.atomic.rkey, and not wr.rdma.rkey (wr_id %llu)",
                    wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id);
}

cold static void judge_inline(struct shadow *qp, const struct wqe *wqe)
{
    if (wqe->length <= qp->qp.inline_asked || wqe->length > qp->qp.cap.max_inline_data || qp->qp.inline_told)
        return;
    qp->qp.inline_told = true;
    finding_add(HOOKS_ABOUT(RULE_INLINE_UNASKED, qp, .posted = wqe->posted),
                "A %s of queue pair 0x%x has %u bytes of inline data, and its max_inline_data is %u "
                "(wr_id %llu)",
                wqe_name(wqe), qp->number, wqe->length, qp->qp.inline_asked, (unsigned long long)wqe->wr_id);
}

/* Judges the memory that a READ writes: with iWARP the data arrives as a write of the peer. */
cold static void judge_sink(const struct shadow *qp, const struct wqe *wqe)
{
    if (((const struct ibv_qp *)qp->handle)->context->device->transport_type != IBV_TRANSPORT_IWARP)
        return;
    for (unsigned at = 0; at < wqe->count; at++) {
        const struct shadow *mr = shadow_find_number(SHADOW_MR, wqe->sges[at].lkey);
        if (!wqe->sges[at].length || !mr || mr->mr.access & IBV_ACCESS_REMOTE_WRITE)
            continue;
        finding_add(HOOKS_ABOUT(RULE_READ_SINK_ACCESS, qp, .posted = wqe->posted),
                    "Element %u of a %s of queue pair 0x%x names a region (lkey 0x%x) that was registered "
                    "without IBV_ACCESS_REMOTE_WRITE, on a device of iWARP (wr_id %llu)",
                    at, wqe_name(wqe), qp->number, wqe->sges[at].lkey, (unsigned long long)wqe->wr_id);
        return;
    }
}

static void judge_request(struct shadow *owner, struct wqe *wqe)
{
    if (wqe->flags & WQE_RECEIVE)
        return;
    if (wqe->flags & WQE_INLINE)
        judge_inline(owner, wqe);
    else if (wqe->opcode == IBV_WR_RDMA_READ)
        judge_sink(owner, wqe);
    if (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
        wqe->opcode == IBV_WR_ATOMIC_WRITE)
        judge_atomic(owner, wqe);
}

static void built(struct shadow *qp, enum hooks_built wrong, const char *call)
{
    static const char *const words[] = {
        [HOOKS_STARTED_TWICE] = "is called between ibv_wr_start and ibv_wr_complete or ibv_wr_abort of the same thread",
        [HOOKS_NOT_STARTED] = "is called, and ibv_wr_start was not",
        [HOOKS_NOT_ASKED] = "is called, and send_ops_flags of ibv_create_qp_ex did not ask for that operation",
        [HOOKS_NOTHING_BEGUN] = "is called, and no work request was begun since ibv_wr_start",
        [HOOKS_DATA_TWICE] = "is called, and the work request has its data already",
    };
    finding_add(HOOKS_ABOUT(RULE_BUILDER_ORDER, qp), "%s of %s %s", call, SHADOW_NAMED(qp), words[wrong]);
}

const struct hooks rules_requests = {.posted = judge_request, .built = built};
