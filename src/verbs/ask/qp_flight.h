/* The part of a report on packets that are on their way. */
#ifndef VERBS_ASK_QP_FLIGHT_H
#define VERBS_ASK_QP_FLIGHT_H

#include <stdio.h>

struct qp;

/* `,"outstanding":N`, and on a network `,"window":N`; nothing of a queue pair that can't know. Under qp->lock. */
void qp_flight_report(FILE *, const struct qp *);

#endif
