/* The records of events in reports and stories. Their fields are those of events.def. */
#ifndef TOOLS_FACTS_RECORD_H
#define TOOLS_FACTS_RECORD_H

#include <jansson.h>
#include <stdbool.h>

#include "events/events.h"

bool record_is(const json_t *record, enum event event);

/* Whether a key of a record is that of a field, which its event has. */
bool record_is_field(const char *key);

/* Nanoseconds since 1970; 0: not known. */
json_int_t record_time(const json_t *record);

/* The value of a field; 0 or "": the record does not have it. */
json_int_t record_number(const json_t *record, enum event_field field);
const char *record_text(const json_t *record, enum event_field field);

/* The last record of the event in a list; NULL: none is left, or there never was one. */
const json_t *record_last(const json_t *records, enum event event);

#endif
