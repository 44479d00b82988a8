#include "verbs/kinds/xrc/xrc_endpoint.h"

#include "process/forward.h"
#include "verbs/kinds/xrc/xrc_front.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/qp/qp_engine.h"

/* Takes a packet of XRC_RECV, which may name an SRQ of another process. */
static enum endpoint_output receive(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    bool fine = !xrc_front_takes(qp, arrival) && qp_endpoint_take(qp, arrival, xrc_front_receive);
    bool output = qp_has_output(qp) || xrc_front_waits(qp);
    lock_release(&qp->lock);
    if (arrival->forwarded && fine)
        forward_prefer(qp->process, arrival->forwarded, arrival->from.packet);
    return output ? ENDPOINT_OUTPUT : ENDPOINT_NOTHING;
}

static bool flush(struct endpoint *endpoint, nanos now, bool ack_later)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    bool waits = xrc_front_waits(qp);
    if (waits)
        xrc_front_flush(qp, now);
    lock_release(&qp->lock);
    return waits || qp_endpoint_flush(endpoint, now, ack_later);
}

const struct endpoint_operations xrc_endpoint_operations = {
    .receive = receive,
    .flush = flush,
    .fail_overrun = qp_endpoint_fail_overrun,
};
