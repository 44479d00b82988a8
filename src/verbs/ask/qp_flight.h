/* The part of a report on requests that are on their way, and what judges need (diagnose/diagnose.h). */
#pragma once

#include "facts/facts.h"

struct qp;

/* From `outstanding` to `port_down`, as far as the queue pair can know. Under qp->lock. */
void qp_flight_fill(struct facts_qp *, const struct qp *);
