/* Work on its way from post to completion. Under the shadow's lock.
 *
 * Completions of one send queue come in the order of its work, but threads that post at the same time enter their work
 * here in another order than the library may take it. So a completion ends, beside its own work, only such unsignalled
 * work as was certainly before it: of the same thread, or of a post that had returned when its own began. */
#ifndef CHECK_FLIGHT_H
#define CHECK_FLIGHT_H

#include "check/hooks.h"

/* The work requests of a list are about to be posted. Answers what flight_end takes. */
uint64_t flight_begin_sends(struct shadow *qp, const struct ibv_send_wr *, const void *posted);
/* `owner` is a QP or an SRQ. */
uint64_t flight_begin_receives(struct shadow *owner, const struct ibv_recv_wr *, const void *posted);

/* The post has returned, which took the first `taken` of the work requests that began at `first`. */
void flight_end(struct shadow *owner, struct wqe_queue *, uint64_t first, unsigned taken, unsigned count);

/* One of a batch of builders, which flight_begin_batch makes flights of. */
uint64_t flight_begin_batch(struct shadow *qp);

/* The receives of a QP or SRQ. */
struct wqe_queue *flight_receives(struct shadow *owner);

/* The program has polled it. */
void flight_complete(const struct hooks_completion *);

#endif
