/* The part of a queue pair's facts on requests that are on their way, and what diagnoses need (diagnose/diagnose.h). */
#pragma once

#include <stdio.h>

#include "facts/facts.h"

struct qp;

/* Packets without an answer; of an initiator (DCI) its question to a target, too. Under qp->lock. */
uint32_t qp_flight_unanswered(const struct qp *);

/* Fills in the members from `outstanding` to `port_down`, as far as the queue pair knows them. Under qp->lock. */
void qp_flight_fill(struct facts_qp *, const struct qp *);

/* Writes the messages of an SRD queue pair that have not ended, as a list of JSON. Under qp->lock. */
void qp_flight_messages(FILE *, const void *qp);
