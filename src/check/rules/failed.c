/* Reports work that ends in an error, in the words of the log and with the place of the post. */
#include "base/likely.h"
#include "check/hooks.h"

/* Returns true if the completion may be of other work with the same wr_id, of another kind or place of post. */
static bool may_be_other(const struct shadow *qp, const struct wqe *wqe)
{
    const struct wqe_queue *receives = qp->qp.srq ? &qp->qp.srq->srq.receives : &qp->qp.receives;
    const struct wqe_queue *queue = wqe->flags & WQE_RECEIVE ? receives : &qp->qp.sends;
    for (uint32_t at = 0; at < queue->count; at++) {
        const struct wqe *other = wqe_at(queue, at);
        bool after = !qp->qp.unordered && wqe->flags & WQE_SIGNALED && wqe_is_before(wqe, other);
        bool differs = other->posted != wqe->posted || other->opcode != wqe->opcode;
        if (other->wr_id == wqe->wr_id && differs && !after)
            return true;
    }
    return wqe->flags & WQE_UNSURE;
}

/* Returns true if a message of SRD found no receive, which its sender may send again. */
static bool may_be_sent_again(const struct shadow *qp, const struct calls_completion *completion)
{
    return qp->qp.unordered && completion->status == IBV_WC_RNR_RETRY_EXC_ERR;
}

/* Reports the first error alone, where the later ones are its consequences. */
cold static void name_error(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    if (qp->qp.ended || wqe->wr_id != completion->wr_id || may_be_sent_again(qp, completion))
        return;
    qp->qp.ended = !qp->qp.unordered;
    bool unsure = may_be_other(qp, wqe), receive = wqe->flags & WQE_RECEIVE;
    finding_add(HOOKS_ABOUT(RULE_FAILED_WORK, qp, .posted = unsure ? NULL : wqe->posted),
                "A %s of queue pair 0x%x (wr_id %llu) ended with %s",
                unsure && !receive ? "work request" : wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id,
                completion->end);
}

static void judge_end(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    if (unlikely(completion->end))
        name_error(qp, wqe, completion);
}

static void follow_state(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_STATE && (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET))
        qp->qp.ended = attr->qp_state == IBV_QPS_ERR;
}

const struct hooks rules_failed = {.completed = judge_end, .modified = follow_state};
