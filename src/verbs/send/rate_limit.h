/* The rate at which a queue pair sends. Its packets are counted in bytes, with headers and repetitions. A burst (in
 * packets of the typical size) may leave at once, and then as many bytes as the rate allows; meanwhile the rest waits
 * in the send queue, for the helper's timer. Answers of a reliable queue pair to its peer are not delayed. Packets
 * inside the host have up to 16 KiB, which is the least burst there. */
#pragma once

#include "verbs/qp/qp.h"

#define RATE_LIMIT_RATE_MAX UINT32_MAX /* kbps */

/* Sets the rate. All functions below are called under qp->lock. */
void rate_limit_set(struct qp *, const struct ibv_qp_rate_limit_attr *);

/* Returns true if the next output must wait. Then it may leave at qp->rate_limit.wake. */
bool rate_limit_holds(struct qp *);

/* Counts bytes that have been sent. */
void rate_limit_count(struct qp *, uint64_t bytes);
