/* Counts calls of the process: refused ones by their reason, and those that the user's script disturbed by the action.
 * Any thread, under any lock or without one. */
#pragma once

#include "events/events.h"

/* Counts an event of events.def that has happened to a call; `reason` is for a REFUSALS line. */
void call_note(enum event, unsigned reason);

/* How often an event has happened: of a REFUSALS line with this reason, and of a SCRIPTED line. */
uint64_t call_count_refused(enum event, unsigned reason);
uint64_t call_count_scripted(enum event);

/* Sets all counts to 0: they have been reported, or are copies of the parent's. */
void call_counts_forget(void);
