/* The objects that a failed work request or receive named, with its numbers, for the line of the log. All under
 * qp->lock. */
#pragma once

#include <infiniband/verbs.h>

#include "diag/diag.h"

struct qp;
struct recv_cqe;
struct recv_wqe;
struct send_wqe;

enum { WORK_WORDS = 448 };

/* Write, after ", ", the element that was refused, with key, address, length and its region; for a request that a
 * peer on another host refused, its own numbers; else "". Return `to`. */
const char *work_words_send(const struct qp *, const struct send_wqe *, enum reason, char to[WORK_WORDS]);
const char *work_words_receive(const struct qp *, const struct recv_wqe *, const struct recv_cqe *,
                               char to[WORK_WORDS]);
