/* An engine whose doors are recorded. Each function here does what the engine_ function of the same name does
 * (transport/engine/engine.h), under the same lock, and appends to the recording the inputs, the owner's answers and
 * the engine's actions. The engine gets an owner that forwards all calls. */
#ifndef RECORD_RECORDED_H
#define RECORD_RECORDED_H

#include "base/likely.h"
#include "transport/engine/engine.h"

struct recorded;

/* Begins with an engine that is not initialized yet; its owner must have its operations when it is. NULL: no memory.
 * `number` points to the queue pair's number. */
struct recorded *recorded_begin(struct engine *, struct engine_owner *, const uint32_t *number);
/* Ends the recording of a queue pair that is destroyed. */
void recorded_end(struct recorded *);

/* Most programs record nothing, so these are not inlined. */
cold void recorded_create(struct recorded *, enum service, const struct send_queue *);
cold void recorded_posted(struct recorded *);
cold void recorded_receive(struct recorded *, const struct packet *, nanos now);
cold void recorded_receive_along(struct recorded *, uint32_t along, nanos now);
cold void recorded_hear_response(struct recorded *, const struct packet *);
cold void recorded_expire(struct recorded *, nanos now, enum silent_peer, enum reason silence);
cold nanos recorded_watch(struct recorded *);
cold bool recorded_transmit(struct recorded *, struct packet *, struct iovec *pieces, nanos now);
cold void recorded_unreadable(struct recorded *, const struct packet *);
cold const struct send_wqe *recorded_next_datagram(struct recorded *);
cold void recorded_acknowledge_late(struct recorded *);
cold void recorded_configure(struct recorded *, const struct engine_settings *);
cold void recorded_allow_references(struct recorded *, uint32_t segment);
cold void recorded_keep_responses(struct recorded *, struct responder_resource *, uint32_t count);
cold void recorded_start_receiving(struct recorded *, uint32_t expected_psn);
cold void recorded_start_transmitting(struct recorded *, uint32_t first_psn);
cold void recorded_drain(struct recorded *, bool draining);
cold void recorded_resume(struct recorded *);
cold void recorded_flush(struct recorded *);
cold void recorded_reset(struct recorded *);
cold struct engine_position recorded_lend(struct recorded *);
cold void recorded_take_over(struct recorded *, const struct engine_position *);
cold void recorded_reclaim(struct recorded *);

#endif
