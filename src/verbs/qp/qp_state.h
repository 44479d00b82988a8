/* The state table of queue pairs (IBA 11.2.5.2, table 91; ibv_modify_qp(3)): which transition a kind of queue pair may
 * make, and which attributes it must and may have. Pure; the values of the attributes are checked elsewhere. */
#pragma once

#include "diag/diag.h"
#include "verbs/qp/kind.h"

/* The transition from `from` to `to`, which may be the same state. For unknown states and a kind of NULL it is not
 * allowed. */
struct qp_transition qp_state_transition(const struct qp_kind *, enum ibv_qp_state from, enum ibv_qp_state to);

/* Checks whether ibv_modify_qp may do this: REASON_NONE, or why not. `from` is the current state, or attr->cur_qp_state
 * when the mask has IBV_QP_CUR_STATE (the caller checks whether that is true); `to` is attr->qp_state, or `from` when
 * the mask lacks IBV_QP_STATE. */
enum reason qp_state_check(const struct qp_kind *, enum ibv_qp_state from, enum ibv_qp_state to, int attr_mask);

/* The mask without attributes that only the other half of an XRC connection has: programs set up both halves alike, and
 * kernels have always allowed that. */
int qp_state_mask(const struct qp_kind *, int attr_mask);
