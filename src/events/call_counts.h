/* The counts of a process's calls: those that were refused, by reason, and those that the user's script disturbed, by
 * its action. Any thread, under any lock or none. */
#ifndef EVENTS_CALL_COUNTS_H
#define EVENTS_CALL_COUNTS_H

#include "events/events.h"

/* An event of events.def that has happened to a call; `reason` is that of a REFUSALS line. */
void call_note(enum event, unsigned reason);

/* How often that was until now, of a REFUSALS line and this reason, or of a SCRIPTED line. */
uint64_t call_count_refused(enum event, unsigned reason);
uint64_t call_count_scripted(enum event);

/* All counts begin anew: they have been reported, or are those of the parent of this process. */
void call_counts_forget(void);

#endif
