/* The counts of a process's calls: refused calls by reason, and calls that the user's script disturbed by its action.
 * Any thread, under any lock or without one. */
#pragma once

#include "events/events.h"

/* Counts an event of events.def that has happened to a call; `reason` is for a REFUSALS line. */
void call_note(enum event, unsigned reason);

/* How often the event happened until now: a REFUSALS line with this reason, a SCRIPTED line. */
uint64_t call_count_refused(enum event, unsigned reason);
uint64_t call_count_scripted(enum event);

/* Sets all counts to 0: they have been reported, or are copies of the parent's. */
void call_counts_forget(void);
