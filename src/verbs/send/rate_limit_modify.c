#include "verbs/send/rate_limit_modify.h"

#include <errno.h>

#include "diag/log.h"
#include "runtime/clock.h"
#include "verbs/send/rate_limit.h"
#include "verbs/send/transmit.h"

static enum reason rate_limit_check(const struct qp *qp, const struct ibv_qp_rate_limit_attr *attr, int *error)
{
    *error = EOPNOTSUPP;
    if (!(qp->traits & QP_SENDS) || qp->ethernet.spread)
        return REASON_QP_RATE_LIMIT;
    *error = EINVAL;
    if (qp->state != IBV_QPS_RTS || attr->comp_mask ||
        (!attr->rate_limit && (attr->max_burst_sz || attr->typical_pkt_sz)))
        return REASON_QP_RATE_LIMIT;
    return REASON_NONE;
}

int rate_limit_modify(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr)
{
    struct qp *qp = qp_of(ibv);
    int error;
    if (!qp_is_known(ibv))
        return ENOENT;
    qp = qp_real(qp);
    lock_take(&qp->lock);
    enum reason reason = rate_limit_check(qp, attr, &error);
    if (!reason) {
        rate_limit_set(qp, attr);
        qp_transmit(qp, clock_now()); /* what an old rate has held back */
    }
    lock_release(&qp->lock);
    if (!reason)
        return 0;
    log_reason(LOG_INFO, reason, "ibv_modify_qp_rate_limit qp 0x%x", qp->number);
    return error;
}
