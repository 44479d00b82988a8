/* Writes why work ended with an error, in the words of the log, for the checker, whose finding names the post. */
#pragma once

#include <stdint.h>

#include "calls/questions.h"
#include "verbs/qp/qp_tell.h"

/* Writes the words of qp_tell_ended; if the queue pair is gone or another thread is in it for long, the words for an
 * unknown queue pair. False: the work was flushed, or what the user asked for may have made it end so (a rule of
 * a script that has acted, faults that lose packets). The caller may hold locks of a program (base/lock_order.h), and
 * no other. Any thread. */
bool qp_words_of_end(const struct ibv_cq *, const struct calls_completion *, char text[QP_TELL_ENDED]);

/* Writes how many RNR NAKs the queue pair of this number has sent; `numbers` is the struct process. False: it is gone,
 * or another thread is in it for long. Locks and threads as for qp_words_of_end. */
bool qp_words_rnrs(void *numbers, uint32_t number, uint64_t *sent);
