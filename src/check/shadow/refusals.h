/* Posts that were refused, and after which none of their queue was taken. All under the shadow's lock, except where
 * noted. */
#pragma once

#include <stdatomic.h>

#include "check/shadow/shadow.h"

extern _Atomic bool refusals_kept;

/* True if there may be such a post: then waits and polls are looked at. Under no lock. */
static inline bool refusals_any(void)
{
    return __builtin_expect(atomic_load_explicit(&refusals_kept, memory_order_relaxed), 0);
}

/* Keeps the post, of a QP or an SRQ, in place of an earlier one of the same queue. */
void refusals_keep(struct shadow *owner, const struct shadow_refused *);

/* Forgets the post: a later one was taken, or nothing is awaited of this queue any more. */
void refusals_drop(struct shadow *owner, bool receive);

/* Calls the function for each kept post of this process whose work completes in the CQ, or in a CQ of the channel. */
void refusals_each(const struct shadow *cq_or_channel, void (*visit)(struct shadow *owner, struct shadow_refused *));
