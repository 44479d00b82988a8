/* Vain waits of a queue pair, as far as this process shows: for a completion that no work request asked for, or for an
 * answer that nothing asks for again. A line of the log says so after some seconds (report/hangs.h), and when the queue
 * pair or its process ends, as programs give up sooner. All under qp->lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag.h"
#include "events/story.h"

struct qp;

/* Returns true if all posted work has ended, and it has or will have no completion. */
bool qp_waits_for_completion(const struct qp *);

/* Returns true if requests were sent that have no response, and its timeout sends them again late or never. `moved`
 * changes when a response arrives. */
bool qp_waits_for_response(const struct qp *, uint32_t *moved);

/* Returns the reason of the log's line for one of these waits, now or after some seconds; REASON_NONE: no such wait. */
enum reason qp_waits_reason(const struct qp *);

/* Asks the peer's process what it knows, for qp_waits_tell_response some seconds later. */
void qp_waits_ask(struct qp *);

/* Write the lines of the log. */
void qp_waits_tell_completion(const struct qp *);
void qp_waits_tell_response(struct qp *);

/* Called when the queue pair is destroyed, or its process ends; `at` as for story_record, of the settled story. True:
 * it had waited for a second, and the log says for what. */
bool qp_waits_end(struct qp *, const struct story *, uint32_t at);
