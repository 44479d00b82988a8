/* Queues that wait for ever, as far as this process alone shows: reported once for each, some seconds after it
 * began. */
#pragma once

#include <stdbool.h>

struct process;

/* A new process's objects have the numbers of the last one's. Before its helper starts. */
void hangs_begin(void);

/* Compares the waiting queues with those of the last look, and logs those that have not changed; the stories of queue
 * pairs whose completions wait are kept (verbs/ask/qp_story_kept.h). True: a queue waits that was not logged yet. Under
 * process->progress; other locks are tried only. */
bool hangs_look(struct process *);
