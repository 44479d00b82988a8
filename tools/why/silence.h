/* Why no answer came to what a queue pair sent: what its peer, another that has the peer's number, or their process
 * shows. */
#ifndef TOOLS_SILENCE_H
#define TOOLS_SILENCE_H

#include "why/tale.h"

/* Of work of `end` that failed, or that waits; `other` NULL: nothing is known of its peer. */
void silence_tell(struct tale *, const struct story_end *end, const struct story_end *other);

/* Packets that the end dropped since then (nanoseconds since 1970), a sentence for each reason. */
void silence_tell_drops(struct tale *, const struct story_end *end, json_int_t since);

/* The reason of `other` that is the cause why work of `end` had no answer: its own first error, or what it dropped. 0:
 * none. */
unsigned silence_reason(const struct story_end *end, const struct story_end *other);

/* That what the other end saw is not known, and why not. */
void silence_tell_missing(struct tale *);

#endif
