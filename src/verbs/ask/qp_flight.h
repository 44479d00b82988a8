/* The part of a report on packets that are on their way. */
#ifndef VERBS_ASK_QP_FLIGHT_H
#define VERBS_ASK_QP_FLIGHT_H

#include "facts/facts.h"

struct qp;

/* `outstanding`, and on a network `window`; nothing of a queue pair that can't know. Under qp->lock. */
void qp_flight_fill(struct facts_qp *, const struct qp *);

#endif
