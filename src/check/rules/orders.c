/* Work of queue pairs of SRD arrives in any order, so what depends on earlier work waits for its completion. */
#include "check/findings/finding.h"
#include "check/shadow/flight.h"

static bool is_write(const struct wqe *wqe)
{
    return wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool tells_peer(const struct wqe *wqe)
{
    return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM ||
           wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Of several threads each may mean another exchange with the peer. */
static bool is_told_of(const struct wqe *message, const struct wqe *earlier)
{
    return tells_peer(message) && earlier->opcode == IBV_WR_RDMA_WRITE && earlier->thread == message->thread;
}

static bool overlaps(const struct wqe *one, const struct wqe *other)
{
    bool remote =
        (is_write(one) || one->opcode == IBV_WR_RDMA_READ) && (is_write(other) || other->opcode == IBV_WR_RDMA_READ);
    return remote && (is_write(one) || is_write(other)) && one->rkey == other->rkey &&
           one->remote < other->remote + other->length && other->remote < one->remote + one->length;
}

/* Finds the first work in flight to the same peer that fits the new work, or NULL. */
static const struct wqe *find_earlier(const struct shadow *qp, const struct wqe *wqe,
                                      bool (*fits)(const struct wqe *, const struct wqe *))
{
    const struct wqe_queue *sends = &qp->qp.sends;
    for (uint32_t at = 0; at < sends->count; at++) {
        const struct wqe *other = wqe_at(sends, at);
        if (other->peer == wqe->peer && other->ah == wqe->ah && !(other->flags & WQE_UNSURE) && fits(wqe, other))
            return other;
    }
    return NULL;
}

static void judge_order(struct shadow *owner, struct wqe *wqe)
{
    if (owner->kind != SHADOW_QP || !owner->qp.unordered || wqe->flags & WQE_RECEIVE)
        return;
    const struct wqe *write = rule_chosen.rules[RULE_ORDER_ASSUMED] ? find_earlier(owner, wqe, is_told_of) : NULL;
    if (write)
        finding_add(HOOKS_ABOUT(RULE_ORDER_ASSUMED, owner, .posted = wqe->posted),
                    "A %s of queue pair 0x%x is posted while an RDMA WRITE to the same peer is in flight, which may "
                    "arrive after it (wr_id %llu and %llu)",
                    wqe_name(wqe), owner->number, (unsigned long long)wqe->wr_id, (unsigned long long)write->wr_id);
    const struct wqe *other = rule_chosen.rules[RULE_TARGETS_OVERLAP] ? find_earlier(owner, wqe, overlaps) : NULL;
    if (other)
        finding_add(HOOKS_ABOUT(RULE_TARGETS_OVERLAP, owner, .posted = wqe->posted),
                    "A %s of queue pair 0x%x names bytes of the peer that a %s in flight names, too, and one of them "
                    "writes: the order is open (wr_id %llu and %llu)",
                    wqe_name(wqe), owner->number, wqe_name(other), (unsigned long long)wqe->wr_id,
                    (unsigned long long)other->wr_id);
}

const struct hooks rules_orders = {.posted = judge_order};
