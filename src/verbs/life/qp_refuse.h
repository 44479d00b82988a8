/* The refusals of ibv_modify_qp(3), and the line for each (events/refusal.h). */
#pragma once

#include <infiniband/verbs.h>

#include "diag/diag.h"

struct qp;

enum { QP_REFUSE_CALL = 160 };

/* REASON_NONE, or why the queue pair can't be changed this way. Under qp->lock. */
enum reason qp_refuse_check(const struct qp *, const struct ibv_qp_attr *, int mask);

/* Writes "qp 0x12: ibv_modify_qp INIT to RTR", and returns it. A program that ignores the result of ibv_modify_qp
 * makes the next call: `before` is the reason of the ignored refusal, or REASON_NONE. */
const char *qp_refuse_name(const struct qp *, const struct ibv_qp_attr *, int mask, enum reason before,
                           char call[QP_REFUSE_CALL]);

/* Writes the line of a call that qp_refuse_check refuses; `before` as above. Returns EINVAL. */
int qp_refuse(const struct qp *, const struct ibv_qp_attr *, int mask, enum reason, enum reason before);
