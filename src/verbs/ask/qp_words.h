/* Why work ended with an error, in the words that the log has for it: for the checker, whose finding names the post. */
#pragma once

#include <stdint.h>

#include "verbs/qp/qp_tell.h"

struct process;

/* An end of work, as its completion has it. */
struct qp_end {
    uint64_t wr_id;
    uint32_t qp_number;
    unsigned status; /* enum ibv_wc_status */
    unsigned reason; /* vendor_err */
};

/* Writes the words of qp_tell_ended; those of a queue pair of which nothing is known, where it is gone or another
 * thread is in it for long. False: the work was flushed, or what the user asked for may have made it end so (a rule of
 * a script that has acted, faults that lose packets). The caller may hold locks of a program (base/lock_order.h), and
 * no other. Any thread. */
bool qp_words_of_end(struct process *, const struct qp_end *, char text[QP_TELL_ENDED]);

/* Writes how many RNR NAKs the queue pair of this number has sent. False: it is gone, or another thread is in it for
 * long. Locks and threads as of qp_words_of_end. */
bool qp_words_rnrs(struct process *, uint32_t number, uint64_t *sent);
