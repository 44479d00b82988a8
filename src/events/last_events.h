/* The last events of an object that has no story (events/story.h): a completion queue, a shared receive queue, a
 * connection, the process. Memory of this process alone, under the object's lock. */
#pragma once

#include <stdio.h>

#include "events/story.h"

enum { LAST_EVENTS = 16 };

struct last_events {
    struct story_record records[LAST_EVENTS];
    uint32_t at; /* bytes that were ever written */
};

/* Notes an event, with the field `more` that event_kept names. The first event allocates the memory, which its owner
 * frees by free(3); without memory nothing is noted. */
void last_events_note(struct last_events **, enum event, uint32_t more, uint64_t a, uint64_t b);

/* Counts an event once more if it is the newest one and has the same `a`: its record gets the present time, and its
 * field `more` is one higher. False: it is not. */
bool last_events_again(struct last_events *, enum event, uint64_t a);

/* Writes a list of JSON, the oldest event first; an empty one for NULL. A time plus `epoch` is nanoseconds since
 * 1970. */
void last_events_report(FILE *, const struct last_events *, int64_t epoch);

/* The same as last_events_report, for a value of facts (facts/facts.h); `told` is a struct last_events_told. */
struct last_events_told {
    const struct last_events *last;
    int64_t epoch;
};
void last_events_write(FILE *, const void *told);

/* The same as last_events_report, for any ring of `count` records. */
void last_events_report_ring(FILE *, const struct story_record *, uint32_t count, uint32_t at, int64_t epoch);

/* Writes each count of a struct counts that is a single number, under its key as a member of JSON. */
void last_events_write_counts(FILE *, const void *counts);
