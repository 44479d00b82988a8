/* The causes of a missing answer, from what is known of the queue pair's peer, of another queue pair that has the
 * peer's number, and of their processes. */
#pragma once

#include "why/explanation.h"

/* Adds sentences about work of `end` that failed or waits; `other` NULL: nothing is known of its peer. */
void silence_tell(struct explanation *, const struct story_end *end, const struct story_end *other);

/* Adds a sentence for each of the first four reasons of packets that the end dropped after `since` (nanoseconds since
 * 1970). */
void silence_tell_drops(struct explanation *, const struct story_end *end, json_int_t since);

/* The reason why `other` did not answer work of `end`: its first error, or the reason of its drops. 0: no reason is
 * known. */
unsigned silence_reason(const struct story_end *end, const struct story_end *other);

/* Adds a sentence that says why the records of the other end are missing. */
void silence_tell_missing(struct explanation *);
