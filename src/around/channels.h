/* Events of completion queues that a rule of a script loses, delays or doubles, in front of another libibverbs. The
 * channels that the program makes from then on have a descriptor of ours in front (library/front.h). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/nanos.h"

/* Puts the layer around. Before the program makes a channel. */
void channels_prepare(void);
bool channels_are_prepared(void);

/* The first completion that is held back in the queue is late until then; NANOS_NEVER: no completion is. If the
 * program has asked for an event, it has one then. Nothing happens if the queue has no channel. The caller may hold
 * locks before LOCK_CHANNELS. */
void channels_note_late(const struct ibv_cq *, nanos due);
