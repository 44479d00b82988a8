/* The records of events in reports and stories. Their fields are in events.def. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "events/events.h"

/* The name of the event; "": the record has no event. */
const char *record_name(const json_t *record);

bool record_is(const json_t *record, enum event event);

/* Returns whether a key of a record belongs to a field: "time" and "event" do not. */
bool record_is_field(const char *key);

/* Nanoseconds since 1970; 0: not known. */
json_int_t record_time(const json_t *record);

/* The value of a field; 0 or "": the record does not have it. */
json_int_t record_number(const json_t *record, enum event_field field);
const char *record_text(const json_t *record, enum event_field field);

/* The last record of the event in a list; NULL: the list has no such record. */
const json_t *record_last(const json_t *records, enum event event);
