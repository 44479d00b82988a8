#include "verbs/send/post_receive.h"

/* ibv_post_recv(3). */
#include <errno.h>

#include "base/result.h"
#include "diag/log.h"
#include "verbs/qp/qp_error.h"
#include "verbs/queue/receive_queue.h"

/* The state is looked at once more after posting: a receive that was posted just before the queue pair went to error is
 * flushed by whoever put it there, one posted just after by us; the queue's lock orders the two. */
int qp_post_receive(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct qp *qp = qp_of(ibv);
    if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET || qp->uses.srq ||
        !qp->receives.queue) {
        *bad = wr;
        enum reason reason = qp->ethernet.spread ? REASON_RSS_NO_QUEUE
                             : qp->uses.srq      ? REASON_RECEIVE_SRQ
                                                 : REASON_RECEIVE_STATE;
        log_reason(LOG_WARN, reason, "qp 0x%x: ibv_post_recv", qp->number);
        return result_failure(EINVAL);
    }
    int error = receive_queue_post(qp->receives.queue, wr, bad);
    if (atomic_load(&qp->state) == IBV_QPS_ERR) {
        lock_take(&qp->lock);
        if (atomic_load(&qp->state) == IBV_QPS_ERR)
            qp_flush_receives(qp);
        lock_release(&qp->lock);
    }
    return error;
}
