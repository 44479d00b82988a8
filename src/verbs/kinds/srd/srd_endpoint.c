/* The functions of an SRD queue pair that the loop calls (runtime/endpoint.h). */
#include "transport/engine/engine.h"
#include "verbs/kinds/srd/srd.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_path.h"
#include "verbs/send/transmit.h"

/* Returns true if the packet needs nothing that qp_endpoint_take does, except the counting: it is of this host, and
 * nothing looks at it or disturbs it. Under qp->lock. */
static inline bool is_plain(const struct qp *qp, const struct endpoint_arrival *arrival)
{
    bool near = arrival->peer && !arrival->forwarded;
    return near && op_service(arrival->from.packet->opcode) == SERVICE_SRD && !qp_is_watched(qp) &&
           !qp_port_is_down(qp) && !traffic_taps(qp_flow(qp)->traffic);
}

static inline enum endpoint_output output_of(const struct qp *qp)
{
    return engine_owes_messages(qp_engine(qp)) ? ENDPOINT_OUTPUT : ENDPOINT_NOTHING;
}

/* Flattened: a usual packet passes the engine without calls, except to its owner. */
__attribute__((flatten)) static enum endpoint_output receive(struct endpoint *endpoint,
                                                             const struct endpoint_arrival *arrival)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    bool usual = is_plain(qp, arrival);
    enum endpoint_output output = ENDPOINT_NOTHING;
    if (likely(usual)) {
        qp_flow(qp)->now = arrival->now;
        traffic_received(qp_flow(qp), arrival->from.packet, NULL);
        engine_receive_message(qp_engine(qp), arrival->from.packet, arrival->now);
        output = output_of(qp);
    }
    lock_release(&qp->lock);
    return likely(usual) ? output : qp_endpoint_operations.receive(endpoint, arrival);
}

/* Answers wait for no round: others that come meanwhile have a packet of their own. */
static bool flush(struct endpoint *endpoint, nanos now, bool ack_later)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    if (engine_owes_messages(qp_engine(qp)))
        qp_transmit_guarded(qp, now);
    lock_release(&qp->lock);
    return true;
}

const struct endpoint_operations srd_endpoint_operations = {
    .receive = receive,
    .flush = flush,
    .fail_overrun = qp_endpoint_fail_overrun,
};
