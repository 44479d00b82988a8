/* Late asynchronous events of a queue pair of an adverse process, each by another time, so in any order. All under
 * qp->lock. */
#ifndef VERBS_ADVERSE_QP_EVENTS_H
#define VERBS_ADVERSE_QP_EVENTS_H

#include "verbs/adverse/qp_adverse.h"

/* Implements qp_raise_later (qp_error.h). True: the event is raised later. */
bool qp_events_keep(struct qp *, enum ibv_event_type);

/* Raises the events that are due until then. */
void qp_events_expire(struct qp *, nanos now);

#endif
