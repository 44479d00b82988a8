/* The facts of a shared receive queue, for `softverbs show` and `softverbs why`. */
#pragma once

#include "facts/facts.h"

struct srq;

/* Fills in what the queue itself knows. Under process->control, which guards the count of its users. Takes the queue's
 * lock. */
void srq_report_fill(struct facts_srq *, struct srq *);
