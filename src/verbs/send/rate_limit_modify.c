#include "verbs/send/rate_limit_modify.h"

#include <errno.h>

#include "events/refusal.h"
#include "events/words.h"
#include "runtime/clock.h"
#include "verbs/send/rate_limit.h"
#include "verbs/send/transmit.h"

/* 0, or the errno of a refusal. */
static int rate_limit_check(const struct qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
    uint32_t number = qp->number;
    if (!(qp->traits & QP_SENDS) || qp->ethernet.spread)
        return refuse(EOPNOTSUPP, REASON_QP_RATE_LIMIT, "qp 0x%x", number);
    if (qp->state != IBV_QPS_RTS)
        return refuse(EINVAL, REASON_RATE_LIMIT_STATE, "qp 0x%x is in %s", number, words_state(qp->state));
    if (attr->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if (!attr->rate_limit && (attr->max_burst_sz || attr->typical_pkt_sz))
        return refuse(EINVAL, REASON_RATE_LIMIT_MISSING,
                      "max_burst_sz is %u and typical_pkt_sz %u, and rate_limit is 0", attr->max_burst_sz,
                      attr->typical_pkt_sz);
    return 0;
}

int rate_limit_modify(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr)
{
    struct qp *qp = qp_of(ibv);
    if (!qp_is_known(ibv))
        return refused(ENOENT);
    qp = qp_real(qp);
    lock_take(&qp->lock);
    int error = rate_limit_check(qp, attr);
    if (!error) {
        rate_limit_set(qp, attr);
        qp_transmit(qp, clock_now()); /* sends that an old rate has held back */
    }
    lock_release(&qp->lock);
    return error;
}
