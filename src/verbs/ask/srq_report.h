/* The facts of a shared receive queue, for `softverbs show` and `softverbs why`. */
#pragma once

#include "facts/facts.h"

struct srq;

/* Fills in what the queue itself knows. Its users are guarded by process->control: the caller has it. Takes the queue's
 * lock. */
void srq_report_fill(struct facts_srq *, struct srq *);
