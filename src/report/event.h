/* Events that a person provokes: what `softverbs event` asks of this process. docs/reference/events.md says what each does.
 */
#ifndef REPORT_EVENT_H
#define REPORT_EVENT_H

#include <stdio.h>

#include "process/process.h"
#include "script/raised.h"

/* The name of the n-th event; NULL behind the last. */
const char *event_name(unsigned n);

/* Does what "event NAME DEVICE" asks, a line of a script, and writes a JSON object: how many contexts were told in "contexts", or "busy": true
 * when the process must be asked again. Under process->progress; blocks on nothing. */
void event_answer(struct process *, const char *request, FILE *out);

/* The event of this device happens, with all that it does, and its contexts are told: how many. Under process->control
 * and process->progress. */
unsigned event_happen(struct process *, const struct device *, const struct script_raised *);

/* The host is lost (node_is_lost): all devices of the process fail, and their contexts are told. False: somebody holds
 * process->control; ask again. Not under process->progress. */
bool event_fail_devices(struct process *);

struct device_state;
/* The interface below the device has changed: publishes the device's new state, and tells the contexts of a table of
 * GIDs that has changed and of a port that went down or up. False: somebody holds process->control; ask again. Not
 * under process->progress. */
bool event_follow(struct process *, const struct device *, const struct device_state *);

#endif
