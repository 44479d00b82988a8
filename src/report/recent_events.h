/* The last events of an object that is no queue pair, for `softverbs why` with --cq, --srq, --id or --events. Requests
 * are "events cq 3", "events srq 3", "events id 3", "events partner 7" (of the identifier whose peer has this
 * communication ID), "events communication 8" (of the identifier that has this communication ID itself) and "events
 * process 0". */
#pragma once

#include <stdio.h>

struct process;

#define REPORT_EVENTS "events "

/* Writes one object of JSON, with the events under the object's word; without events if this process has no such
 * object, or a thread is changing its objects. Under process->progress. */
void recent_events_answer(struct process *, const char *request, FILE *);
