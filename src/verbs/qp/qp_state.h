/* The state table of queue pairs (IBA 11.2.5.2, table 91; ibv_modify_qp(3)): which transition a type of queue pair may
 * make, and which attributes it must and may bring along. Pure; the values of the attributes are checked elsewhere. */
#ifndef VERBS_QP_QP_STATE_H
#define VERBS_QP_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "diag/diag.h"

/* One transition of one type. `required` and `optional` are masks of enum ibv_qp_attr_mask; a bit in neither is
 * refused. */
struct qp_transition {
    bool allowed;
    int required, optional;
};

/* The transition from `from` to `to`, which may be the same state. Anything unknown gives one that is not allowed. */
struct qp_transition qp_state_transition(enum ibv_qp_type, enum ibv_qp_state from, enum ibv_qp_state to);

/* May ibv_modify_qp do this? REASON_NONE, or why not. `from` is the current state, or attr->cur_qp_state when the mask
 * has IBV_QP_CUR_STATE (whether that is true is the caller's to check); `to` is attr->qp_state, or `from` when the mask
 * lacks IBV_QP_STATE. */
enum reason qp_state_check(enum ibv_qp_type, enum ibv_qp_state from, enum ibv_qp_state to, int attr_mask);

/* The mask without what only the other half of an XRC connection has: programs set up both halves alike, and kernels
 * have always let them. */
int qp_state_mask(enum ibv_qp_type, int attr_mask);

#endif
