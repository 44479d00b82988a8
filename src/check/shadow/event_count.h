/* Counts the events of an object that the program has fetched, and those that it has acknowledged. */
#pragma once

#include "check/shadow/shadow.h"

/* Counts events of an object, if it is known. Notes the place of the first acknowledgement that is one too many. Takes
 * the shadow's lock. */
void event_count(enum shadow_kind, const void *handle, unsigned fetched, unsigned acknowledged);

/* --- under the lock */

/* The number of events that were fetched and not acknowledged. */
unsigned event_count_open(const struct shadow *);

/* The number of events that were acknowledged and not fetched. */
unsigned event_count_excess(const struct shadow *);

/* Returns true if another thread fetched the last event, which it may be about to acknowledge. */
bool event_count_is_others(const struct shadow *);
