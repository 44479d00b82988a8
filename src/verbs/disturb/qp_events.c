#include "verbs/disturb/qp_adverse.h"

#include "verbs/qp/qp_error.h"

static const nanos event_late = 2 * NANOS_MILLISECOND; /* the longest, unless times are scaled */

/* Errors are raised at once: a program's reaction to them would only take longer. */
static const enum ibv_event_type may_be_late[QP_EVENTS] = {IBV_EVENT_COMM_EST, IBV_EVENT_QP_LAST_WQE_REACHED,
                                                           IBV_EVENT_SQ_DRAINED};

bool qp_events_keep(struct qp *qp, enum ibv_event_type type)
{
    struct qp_adverse *adverse = qp_adverse_of(qp);
    for (unsigned i = 0; i < QP_EVENTS; i++) {
        nanos late = may_be_late[i] == type ? adverse_delay(&adverse->source, ADVERSE_ASYNC_EVENTS, event_late) : 0;
        if (!late)
            continue;
        adverse->events[i] = qp_flow(qp)->now + late;
        qp_adverse_watch(adverse);
        return true;
    }
    return false;
}

void qp_events_expire(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_adverse_of(qp);
    for (unsigned i = 0; i < QP_EVENTS; i++) {
        if (adverse->events[i] == NANOS_NEVER || adverse->events[i] > now)
            continue;
        adverse->events[i] = NANOS_NEVER;
        qp_raise_now(qp, may_be_late[i]);
    }
    qp_adverse_watch(adverse);
}
