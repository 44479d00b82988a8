/* Why no answer came to what a queue pair sent: what its peer, another that has the peer's number, or their process
 * shows. */
#ifndef TOOLS_SILENCE_H
#define TOOLS_SILENCE_H

#include "why/tale.h"

/* Adds sentences about work of `end` that failed or waits; `other` NULL: nothing is known of its peer. */
void silence_tell(struct tale *, const struct story_end *end, const struct story_end *other);

/* Packets that the end dropped since then (nanoseconds since 1970), a sentence for each reason. */
void silence_tell_drops(struct tale *, const struct story_end *end, json_int_t since);

/* The reason why `other` did not answer work of `end`: its first error, or the reason of its drops. 0: no reason is
 * known. */
unsigned silence_reason(const struct story_end *end, const struct story_end *other);

/* Adds a sentence: the records of the other end are missing, and why. */
void silence_tell_missing(struct tale *);

#endif
