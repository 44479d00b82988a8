/* The objects that a failed work request or receive named, with its numbers, for the line of the log. All under
 * qp->lock. */
#pragma once

#include "verbs/qp/qp_tell.h"

/* Write the element that was refused, with key, address and length, and the cause; of a request that a peer on another
 * host refused, the numbers of the request; otherwise nothing. `to` is empty before. */
void work_words_send(const struct qp *, const struct send_wqe *, enum reason, struct tell_numbers *to);
void work_words_receive(const struct qp *, const struct recv_wqe *, const struct recv_cqe *, struct tell_numbers *to);
