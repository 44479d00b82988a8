/* When the story of a queue pair (qp_story.h) is kept: written where `softverbs why --last` reads it when the process
 * has ended (diag/kept_story.h). All under qp->lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct qp;

/* Keeps the story of a queue pair that has left RTS with an error or flushed work, and writes it into the log if that
 * has lines of LOG_INFO. */
void qp_story_keep(struct qp *);

/* Keeps the story of an SRD queue pair after its first message that failed, in the same way; qp_story_end renews it. */
void qp_story_keep_first(struct qp *);

/* Keeps the story as the queue pair is destroyed, or its process ends, if something may be wrong without an error: its
 * last message was refused for want of a receive, it refused messages of SRD, posted work has not ended, it has old
 * unpolled completions in a queue with a channel, or it had waited in vain (qp_waits.h), which the log says then.
 * Renews an outdated story. */
void qp_story_end(struct qp *);

/* Keeps the story, as the process may be killed while it hangs: for some seconds completions were unpolled in a queue
 * with a channel, messages have found no receive, or the queue pair waits in vain (qp_waits.h). */
void qp_story_wait(struct qp *);

/* Returns whether its last message, or its peer's, found no receive. `moved` changes when a message has found one. */
bool qp_story_lacks_receive(const struct qp *, uint32_t *moved);
