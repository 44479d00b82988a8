/* Events that a person provokes: the requests of `softverbs event` to this process. docs/reference/events.md has the
 * effect of each. */
#pragma once

#include <stdio.h>

#include "script/raised.h"
#include "verbs/object/process_objects.h"

/* Executes the request "event NAME DEVICE", a line of a script, and writes a JSON object: the number of contexts that
 * got it in "contexts", or "busy": true when the process must be asked again. Under process->progress; blocks on
 * nothing. */
void event_answer(struct process *, const char *request, FILE *out);

/* The event of this device happens, with all its effects, and its contexts get it: returns their number. Under
 * process->control and process->progress. */
unsigned event_happen(struct process *, const struct device *, const struct script_raised *);

/* The host is lost (node_is_lost): all devices of the process fail, and their contexts get the event. False: another
 * thread holds process->control; ask again. Not under process->progress. */
bool event_fail_devices(struct process *);

struct device_state;
/* The interface below the device has changed: publishes the device's new state, and raises events for a table of GIDs
 * that has changed and for a port that went down or up. False: another thread holds process->control; ask again. Not
 * under process->progress. */
bool event_follow(struct process *, const struct device *, const struct device_state *);
