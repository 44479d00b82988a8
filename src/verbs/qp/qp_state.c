#include "verbs/qp/qp_state.h"

static bool state_exists(enum ibv_qp_state state)
{
    return (unsigned)state < QP_STATES;
}

struct qp_transition qp_state_transition(const struct qp_kind *kind, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (!kind || !state_exists(from) || !state_exists(to))
        return (struct qp_transition){false, 0, 0};
    struct qp_transition transition = kind->transitions[from][to];
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        transition.allowed = true;
    if (!transition.allowed)
        return transition;
    if (from == to)
        transition.optional |= IBV_QP_STATE;
    else
        transition.required |= IBV_QP_STATE;
    return transition;
}

enum reason qp_state_check(const struct qp_kind *kind, enum ibv_qp_state from, enum ibv_qp_state to, int attr_mask)
{
    const struct qp_transition transition = qp_state_transition(kind, from, to);
    if (!state_exists(from) || !state_exists(to))
        return REASON_STATE_UNKNOWN;
    if (!transition.allowed)
        return REASON_STATE_TRANSITION;
    if (transition.required & ~attr_mask)
        return REASON_ATTRIBUTE_MISSING;
    if (attr_mask & ~(transition.required | transition.optional))
        return REASON_ATTRIBUTE_NOT_ALLOWED;
    return REASON_NONE;
}

int qp_state_mask(const struct qp_kind *kind, int attr_mask)
{
    return attr_mask & ~kind->ignored;
}
