/* XRC with three processes: the process whose shared receive queue a message names executes the message in
 * place of the process that has the queue pair. In a story its end replaces the receiver's end if it knows more. */
#pragma once

#include <stdbool.h>

#include "why/explanation.h"

/* Returns whether this is the end of a stand-in. */
bool substitute_is(const struct story_end *end);

/* Returns whether `one` is the better of two stand-ins: the one that failed, otherwise the later one. */
bool substitute_is_better(const struct story_end *one, const struct story_end *other);

/* Puts the stand-in in the place of the one of the two ends that receives, if it knows more: it failed, or was the last
 * without a receive. The peer may be NULL, and so may the stand-in. Returns true if it did. */
bool substitute_act(const struct story_end **own, const struct story_end **peer, const struct story_end *substitute);

/* Adds the sentence that the stand-in executes messages for this end, which may be NULL. */
void substitute_tell(struct explanation *, const struct story_end *substitute, const struct story_end *end);
