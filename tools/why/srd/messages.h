/* The sentences about messages of SRD, where an error ends one message and not the queue pair. `receivers` is the array
 * of the ends that the messages were for (struct story_ends). */
#pragma once

#include "why/explanation.h"

/* Returns whether messages of the end failed or have not ended, or it has refused messages. */
bool messages_are_of(const struct story_end *);

/* Adds what became of each message of the own end that failed, what that end has refused, and which messages wait. */
void messages_tell(struct explanation *, const json_t *receivers);

/* Adds which reasons have causes and cures. */
void messages_explain(struct explanation *, const json_t *receivers);

/* The reason that explains the first message: of the end that refused it, if that is known. */
unsigned messages_reason(const struct story_end *, const json_t *receivers);
