/* Vain waits of a queue pair, as far as this process shows: for a completion that no work request asked for, or for an
 * answer that nothing asks for again. A line of the log says so after some seconds (report/hangs.h), and when the queue
 * pair or its process ends, as programs give up sooner. All under qp->lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag.h"
#include "events/story.h"

struct qp;

/* All that was posted since its last reset has ended, and no completion came or will come of it. */
bool qp_waits_for_completion(const struct qp *);

/* Requests were sent that have no answer, and its timeout sends them again late or never. `moved` changes when an
 * answer comes. */
bool qp_waits_for_response(const struct qp *, uint32_t *moved);

/* The reason of the line that says so, now or after some seconds; REASON_NONE: it waits for neither. */
enum reason qp_waits_reason(const struct qp *);

/* Asks the peer's process what it knows, for qp_waits_tell_response some seconds later. */
void qp_waits_ask(struct qp *);

/* The lines of the log. */
void qp_waits_tell_completion(const struct qp *);
void qp_waits_tell_response(struct qp *);

/* It is destroyed, or its process ends, `at` the end of its settled story. True: it had waited for a second, and
 * the log says for what. */
bool qp_waits_end(struct qp *, const struct story *, uint32_t at);
