/* The three engines behind one set of calls. */
#ifndef TRANSPORT_TESTING_SIMULATOR_ENGINE_H
#define TRANSPORT_TESTING_SIMULATOR_ENGINE_H

#include "transport/testing/simulator/world.h"

bool engine_is_reliable(const struct endpoint *);
struct send_queue *engine_queue(struct endpoint *);
bool engine_has_failed(const struct endpoint *);
bool engine_is_flushing(const struct endpoint *); /* failed, or SQE */
void engine_start(struct endpoint *, uint32_t expected_psn, uint32_t first_psn);
void engine_posted(struct endpoint *);
void engine_receive(struct endpoint *, const struct packet *);
bool engine_transmit(struct endpoint *, struct packet *, struct iovec *pieces);
bool engine_has_output(const struct endpoint *);
nanos engine_deadline(const struct endpoint *);
nanos engine_watch(struct endpoint *);
void engine_expire(struct endpoint *);
void engine_postpone(struct endpoint *);
void engine_drain(struct endpoint *, bool draining);
void engine_recover(struct endpoint *); /* from SQE */
void engine_flush(struct endpoint *);

#endif
