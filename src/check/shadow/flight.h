/* Work between post and completion. Under the shadow's lock.
 *
 * Completions of a send queue are in the order of its work, but threads that post at the same time may enter their work
 * here in another order than the library takes it. So a completion ends, beside its own work, only unsignalled work
 * that was certainly before it: of the same thread, or of a post that had returned when its own began. Where work
 * completes in any order (an SRQ of several queue pairs, SRD), a completion ends its own work alone; other work with
 * its wr_id may be meant, and no rule looks at that any more. */
#pragma once

#include "check/hooks_call.h"

/* Enters the work requests of a list that is about to be posted. Returns the argument `first` of flight_end. */
uint64_t flight_begin_sends(struct shadow *qp, const struct ibv_send_wr *, const void *posted);
/* `owner` is a QP or an SRQ. */
uint64_t flight_begin_receives(struct shadow *owner, const struct ibv_recv_wr *, const void *posted);

/* The post has returned. The library took the first `taken` of the `count` work requests that began at `first`. */
void flight_end(struct shadow *owner, struct wqe_queue *, uint64_t first, unsigned taken, unsigned count);

/* Enters the work of a batch of builders. Returns the argument `first` of flight_end. */
uint64_t flight_begin_batch(struct shadow *qp);

/* The receives of a QP or SRQ. */
struct wqe_queue *flight_receives(struct shadow *owner);

/* Ends the work of a completion that the program has polled. */
void flight_complete(const struct calls_completion *);
