/* Keeps the last refused post of each queue until a later post of the queue is taken. All under the shadow's lock,
 * except where noted. */
#pragma once

#include <stdatomic.h>

#include "check/shadow/shadow.h"

extern _Atomic bool refusals_kept;

/* Returns true if a refused post may be kept, so that waits and polls are looked at. Under no lock. */
static inline bool refusals_any(void)
{
    return __builtin_expect(atomic_load_explicit(&refusals_kept, memory_order_relaxed), 0);
}

/* Keeps the post, of a QP or an SRQ, in place of an earlier one of the same queue. */
void refusals_keep(struct shadow *owner, const struct shadow_refused *);

/* The kept post of a queue; its `call` is NULL if there is no such post. */
static inline struct shadow_refused *refusals_of(struct shadow *owner, bool receive)
{
    if (owner->kind == SHADOW_SRQ)
        return &owner->srq.refused;
    return receive ? &owner->qp.refused_receive : &owner->qp.refused_send;
}

/* Forgets the kept post: a later one was taken, or nobody waits for completions of this queue any more. */
static inline void refusals_drop(struct shadow *owner, bool receive)
{
    shadow_assert_locked();
    refusals_of(owner, receive)->call = NULL;
}

/* Calls the function for each kept post of this process whose work completes in the CQ, or in a CQ of the channel. */
void refusals_each(const struct shadow *cq_or_channel, void (*visit)(struct shadow *owner, struct shadow_refused *));
