/* The last events of a completion queue, for `softverbs why`: events asked for, raised, fetched and lost. */
#pragma once

#include "events/events.h"
#include "verbs/queue/cq.h"

/* Keeps the event, with its fields. Under cq->lock. */
void cq_note(struct cq *, enum event, uint64_t a, uint64_t b);
