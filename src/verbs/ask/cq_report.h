/* Reports the contents of a completion queue and the fate of its events, for `softverbs show` and `softverbs why`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "facts/facts.h"

struct cq;

/* Writes the queue's facts as a JSON object. The caller has filled in the name of its device and its users, which the
 * queue does not know. `epoch`: the last events are written, too, and a time plus this number is nanoseconds since
 * 1970; NULL: they are left out. Takes cq->lock. */
void cq_report(FILE *, struct cq *, struct facts_cq *, const int64_t *epoch);

/* Fills in the facts that cq_report writes, except the last events. Under cq->lock. */
void cq_report_fill(struct facts_cq *, struct cq *);

/* Returns true if the queue has completions of the queue pair, and a channel, so that the program can wait for an
 * event. False for NULL. Takes cq->lock. */
bool cq_report_waits(struct cq *, uint32_t qp_number);
