/* Asynchronous events of a queue pair of an adverse process that come late, each by another time, so in any order. All
 * under qp->lock. */
#ifndef VERBS_ADVERSE_QP_EVENTS_H
#define VERBS_ADVERSE_QP_EVENTS_H

#include "verbs/adverse/qp_adverse.h"

/* For qp_raise_later (qp_error.h): true: the event comes later. */
bool qp_events_keep(struct qp *, enum ibv_event_type);

/* Those that are due until then are raised. */
void qp_events_expire(struct qp *, nanos now);

#endif
