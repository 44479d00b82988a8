/* When the story of a queue pair (qp_story.h) is kept: written where `softverbs why --last` reads it when the process
 * has ended (diag/kept_story.h). All under qp->lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct qp;

/* It has left RTS: its story is written where it can be read when the process has ended (diag/kept_story.h), and into
 * the log if that has lines of LOG_INFO. */
void qp_story_keep(struct qp *);

/* It is destroyed, or its process ends: likewise, where it had no error and its last message was refused for want of a
 * receive, posted work has not ended, completions of it lay for a while in a queue with a channel, unpolled, or it had
 * waited in vain (qp_waits.h), which the log says then. */
void qp_story_end(struct qp *);

/* Completions of it have lain unpolled for some seconds in a queue with a channel, its messages have found no receive
 * for so long, or it waits in vain (qp_waits.h): likewise, as the process may be killed while it hangs. */
void qp_story_wait(struct qp *);

/* Returns whether its last message, or its peer's, found no receive. `moved` changes when one has found one. */
bool qp_story_lacks_receive(const struct qp *, uint32_t *moved);
