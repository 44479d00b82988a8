/* Ends of queue pairs of an adapter, whose stories are made of calls (src/around/story/story.h): what only these have. */
#pragma once

#include "why/explanation.h"

bool adapter_is(const struct story_end *end);

/* Of a work request of `own` that the peer refused by a NAK, the peer's adapter keeps no account. Where the regions and
 * rights in the peer's story show why, `peer` becomes an end that refused it. Otherwise it stays as it is. */
void adapter_judge(const struct story_end *own, struct story_end *peer);

/* Adds the place of the post, the meaning of vendor_err, and the counters of the port, as far as they are known; those of
 * the port of `told` not again. Both may be NULL. */
void adapter_tell(struct explanation *, const struct story_end *end, const struct story_end *told);

/* Adds why the peer did not answer, as far as the attributes of both ends show. */
void adapter_tell_silence(struct explanation *, const struct story_end *end, const struct story_end *other);
