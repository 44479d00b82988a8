/* The checker's look at queues in memory: mistakes are noted under the locks of the taker, and told after them. */
#pragma once

#include <stdbool.h>

#include "calls/forms.h"

struct cq_memory;
struct form;
struct send_ring;
struct send_wqe;

/* Returns true if somebody asks for mistakes. */
static inline bool judge_is_wanted(void)
{
    return calls_form_mistaken;
}

/* Judges the next work request, before it is taken: `whole` as it was copied; and what it became, before it is posted:
 * `fits`: the form could be read. Under qp->lock. */
void judge_form(const struct send_ring *, const struct form *, uint16_t posted, bool whole);
void judge_work(const struct send_ring *, const struct form *, const struct send_wqe *, bool fits);

/* Judges what the program says that it has consumed. Under process->progress. */
void judge_consumed(struct cq_memory *);

enum { JUDGE_NOTES = 64 }; /* the most that are kept; later ones are not noted */

/* Takes the mistakes that were noted; returns their number. Under process->progress. */
unsigned judge_take(struct calls_form_mistake taken[JUDGE_NOTES]);
