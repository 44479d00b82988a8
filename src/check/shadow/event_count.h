/* The events of an object: those that the program has fetched, and those that it has acknowledged. */
#pragma once

#include "check/shadow/shadow.h"

/* Counts events of an object, if it is known; notes the place where more have been acknowledged than fetched. Takes the
 * shadow's lock. */
void event_count(enum shadow_kind, const void *handle, unsigned fetched, unsigned acknowledged);

/* --- under the lock */

/* The number of events that were fetched and not acknowledged. */
unsigned event_count_open(const struct shadow *);

/* The number of events that were acknowledged and not fetched. */
unsigned event_count_excess(const struct shadow *);

/* Returns true if the thread that fetched the last event is not this one: it may be about to acknowledge it. */
bool event_count_is_others(const struct shadow *);
