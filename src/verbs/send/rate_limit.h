/* How fast a queue pair sends. Its packets are counted in bytes, headers and repetitions too. So many may go at once as
 * the burst has (in packets of the typical size), and as time passes so many more as the rate has; meanwhile the rest
 * waits in the send queue, for the helper's timer. Answers of a reliable queue pair to its peer are not held up.
 * Messages go in packets of up to 16 KiB, so that is the least burst. */
#ifndef VERBS_SEND_RATE_LIMIT_H
#define VERBS_SEND_RATE_LIMIT_H

#include "verbs/qp/qp.h"

#define RATE_LIMIT_RATE_MAX UINT32_MAX /* kbps */

/* Under qp->lock, all below. */
void rate_limit_set(struct qp *, const struct ibv_qp_rate_limit_attr *);

/* Returns true if the next output must wait. Then qp->rate_limit.wake is when it may go. */
bool rate_limit_holds(struct qp *);

/* So many bytes have been sent. */
void rate_limit_count(struct qp *, uint64_t bytes);

#endif
