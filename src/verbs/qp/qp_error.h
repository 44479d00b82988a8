/* Moves queue pairs to the error state, and raises their asynchronous events. All under qp->lock. */
#pragma once

#include "verbs/qp/qp.h"

/* Moves to the error state as the program asked: the engine's work and the receives are flushed. */
void qp_flush(struct qp *);

/* Moves to the error state for an error that the engine did not see: the whole queue pair is flushed and `event`
 * raised, except IBV_EVENT_DEVICE_FATAL, which contexts report. The inside of a work queue raises IBV_EVENT_WQ_FATAL
 * instead. A refusal that was kept is reported first: qp_inquiry_settle (ask/qp_inquiry.h). */
void qp_fail(struct qp *, enum ibv_event_type event);

/* Asks peers that may be reading memory of this queue pair by reference to forget it. After the return the program may
 * have its memory back. */
void qp_withdraw_references(struct qp *);

/* Flushes the receive queue; on an SRQ raises LAST_WQE_REACHED once. The state is ERR already. */
void qp_flush_receives(struct qp *);

/* Raises an asynchronous event of the queue pair, or of all its handles. */
void qp_raise(struct qp *, enum ibv_event_type);
void qp_raise_now(struct qp *, enum ibv_event_type); /* does not ask the disturbance, which may delay events */
