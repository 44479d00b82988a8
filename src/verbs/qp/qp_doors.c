#include "verbs/qp/qp_doors.h"

void qp_door_posted_slow(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp_datapath(qp)->recorded)
        recorded_posted(qp_datapath(qp)->recorded);
    else
        engine_flush_posted(qp_engine(qp));
}

void qp_door_acknowledge_late_slow(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp_datapath(qp)->recorded)
        recorded_acknowledge_late(qp_datapath(qp)->recorded);
    else
        engine_acknowledge_late(qp_engine(qp));
}
