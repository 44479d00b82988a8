/* The facts of an end of a story: a queue pair, and its first error. */
#pragma once

#include "facts/seen.h"

enum { STORY_NAME = 64 };

/* Facts about parts of an error that the end lacks are not known. */
struct story_end {
    char name[STORY_NAME]; /* "client (4711)" */
    struct facts_qp qp;    /* the facts of the queue pair that a story has, and the number */
    struct facts_story story;
    struct facts_error error;
    struct facts_receive receive;
    struct facts_refused memory;
    struct facts_short too_short;
};

/* Reads an end (End of docs/reference/json.md) into `room`. The JSON must live as long as `room` is used. NULL: `json`
 * is NULL, or facts_read refuses it. */
const struct story_end *story_end_read(struct story_end *room, const json_t *json);

/* Puts into `room` the end as if the object of JSON (Failure) were its error. Returns `room`; NULL: facts_read refuses
 * it. */
const struct story_end *story_end_with(struct story_end *room, const struct story_end *, const json_t *error);

/* The reason of the end's first error; 0: no error. `end` may be NULL. */
unsigned story_end_reason(const struct story_end *end);

/* The end's last record of the event; NULL: no record is left. `end` may be NULL. */
const json_t *story_end_event(const struct story_end *end, enum event event);

/* The end's records. `end` may be NULL. */
const json_t *story_end_events(const struct story_end *end);

bool story_end_is_in(const struct story_end *end, const char *state);

/* How often the event was counted; 0 of an end that is NULL. */
uint64_t story_end_count(const struct story_end *end, enum event event);
