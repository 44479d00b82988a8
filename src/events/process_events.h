/* The last events of the process: calls that were refused or that a script disturbed, asynchronous events, changes of
 * devices, peers that ended. Any thread, under any lock or without one. */
#pragma once

#include "events/last_events.h"

/* Keeps the event. The words in its fields live as long as the process. */
void process_events_note(enum event, uint32_t more, uint64_t a, uint64_t b);

/* Returns a copy of the kept events. */
struct last_events process_events_copy(void);

/* Drops all events, which were the parent's. */
void process_events_forget(void);
