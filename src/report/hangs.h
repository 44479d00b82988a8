/* What waits for ever, as far as this process alone shows: said once of each queue, some seconds after it began. */
#ifndef REPORT_HANGS_H
#define REPORT_HANGS_H

#include <stdbool.h>

struct process;

/* A new process's objects have the numbers of the last one's. Before its helper starts. */
void hangs_begin(void);

/* Compares what waits with what did at the last look, and logs what has not changed; the stories of queue pairs whose
 * completions wait are kept (verbs/ask/qp_story_kept.h). True: something waits that was not told yet. Under
 * process->progress; other locks are tried only. */
bool hangs_look(struct process *);

#endif
