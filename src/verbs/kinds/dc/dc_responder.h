/* The responders of a target (dc.h): each executes the requests of one initiator. All under process->progress. */
#pragma once

#include "base/nanos.h"
#include "wire/packet.h"

struct dc_target;
struct endpoint_arrival;
struct qp;

/* NULL: no memory. */
struct dc_target *dc_target_make(struct qp *);
void dc_target_free(struct dc_target *);

/* Answers an initiator that asks for a responder. */
void dc_target_welcome(struct dc_target *, const struct endpoint_arrival *, bool wrong_key);

/* Gives a request to the responder that it names, or tells its sender that the responder has ended. False: the sender
 * never had such a responder. */
bool dc_target_deliver(struct dc_target *, const struct endpoint_arrival *);

/* The queue pair is reset: its responders take nothing any more. Under its lock alone. */
void dc_target_renew(struct dc_target *);

/* Ends all responders. A message that has begun ends with an error. */
void dc_target_end(struct dc_target *);
