/* Completions that a rule of a script holds back or loses, in front of another libibverbs: when the program polls them.
 * A completion that is held back keeps all that follow it in its queue waiting. Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

#include "calls/questions.h"

/* Puts the layer around. */
void late_prepare(void);

/* True: the entry at which this queue's iterator is was held back, and is copied. */
bool late_shown(const struct ibv_cq_ex *, struct calls_completion *);
