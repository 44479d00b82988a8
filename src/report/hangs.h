/* Queues that wait for ever, as far as this process shows: each is logged once, some seconds after it began to wait. */
#pragma once

#include <stdbool.h>

struct process;

/* Forgets the last look, as objects of a new struct process have the numbers of the last one's objects again. Call it
 * before the helper starts. */
void hangs_begin(void);

/* Compares the waiting queues with those of the last look, and logs those that have not changed; keeps the stories of
 * queue pairs whose completions wait (verbs/ask/qp_story_kept.h). True: a queue waits that was not logged yet, so look
 * again. Under process->progress; other locks are only tried. */
bool hangs_look(struct process *);
