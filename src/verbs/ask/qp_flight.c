#include "verbs/ask/qp_flight.h"

#include "transport/engine/flight.h"
#include "verbs/qp/qp_datapath.h"

/* The window is that of a network: a link of the host never loses. */
void qp_flight_report(FILE *out, const struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (!engine_is_reliable(qp_engine(qp)) || qp->state < IBV_QPS_RTS)
        return;
    fprintf(out, ",\"outstanding\":%u", flight_outstanding(qp_engine(qp)));
    if (qp->path.remote)
        fprintf(out, ",\"window\":%u", flight_window(qp_engine(qp)));
}
