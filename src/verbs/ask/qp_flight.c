#include "verbs/ask/qp_flight.h"

#include "facts/fill.h"
#include "transport/engine/flight.h"
#include "verbs/qp/qp_datapath.h"

/* The window is that of a network: a link of the host never loses. */
void qp_flight_fill(struct facts_qp *facts, const struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (!engine_is_reliable(qp_engine(qp)) || qp->state < IBV_QPS_RTS)
        return;
    fact_put(&facts->outstanding, true, flight_outstanding(qp_engine(qp)));
    if (qp->path.remote)
        fact_put(&facts->window, true, flight_window(qp_engine(qp)));
}
