/* Completions that a rule of a script holds back or loses, in front of another libibverbs: when the program polls them.
 * A completion that is held back keeps all that follow it in its queue waiting, but for those that other threads poll in
 * the same moment. Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

/* Puts the layer around. */
void late_prepare(void);

/* The entry at which this thread's iterator of the queue is, if it was held back; NULL. Until the iterator moves. */
const struct ibv_wc *late_shown(const struct ibv_cq_ex *);
