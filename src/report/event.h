/* Asynchronous events of devices: what a person provokes by `softverbs event` (docs/reference/events.md has the effect
 * of each), and the effects of a lost host and of interfaces. */
#pragma once

#include <stdio.h>

#include "script/raised.h"
#include "verbs/object/process_objects.h"

/* Executes the request "event NAME DEVICE", a line of a script, and writes a JSON object: the number of contexts that
 * got it in "contexts", or "busy": true when the process must be asked again. Under process->progress; never blocks. */
void event_answer(struct process *, const char *request, FILE *out);

/* Lets the event happen to this device, with all its effects. Returns the number of contexts that got it. Under
 * process->control and process->progress. */
unsigned event_happen(struct process *, const struct device *, const struct script_raised *);

/* Lets all devices of the process fail after the host is lost (node_is_lost); their contexts get the event. False:
 * another thread holds process->control; call again. Not under process->progress. */
bool event_fail_devices(struct process *);

struct device_state;
/* Publishes the device's new state after a change of the interface below it, and raises events for a table of
 * GIDs that has changed and for a port that went down or up. False: another thread holds process->control; call again.
 * Not under process->progress. */
bool event_follow(struct process *, const struct device *, const struct device_state *);
