/* Work requests that programs write into memory (mlx5dv_init_obj(3)), as no call checks them. */
#include "check/hooks_call.h"

static void see_units(const struct shadow *qp, const struct calls_form_mistake *mistake)
{
    finding_add(
        HOOKS_ABOUT(RULE_WQE_UNITS, qp),
        "A work request in the send queue of queue pair 0x%x has %u units of 16 bytes (ds), which do not fit its "
        "operation or what was posted (index %u)",
        qp->number, mistake->found, mistake->index);
}

static void see_overrun(const struct shadow *qp, const struct calls_form_mistake *mistake)
{
    finding_add(
        HOOKS_ABOUT(RULE_WQE_OVERRUN, qp),
        "The program has written %u blocks since the oldest work of queue pair 0x%x that has not ended, and the "
        "send queue has %u (index %u)",
        mistake->found, qp->number, mistake->wanted, mistake->index);
}

static void see_number(const struct shadow *qp, const struct calls_form_mistake *mistake)
{
    finding_add(HOOKS_ABOUT(RULE_WQE_NUMBER, qp),
                "A work request in the send queue of queue pair 0x%x names queue pair 0x%x (index %u)", qp->number,
                mistake->found, mistake->index);
}

static void see_operation(const struct shadow *qp, const struct calls_form_mistake *mistake)
{
    finding_add(
        HOOKS_ABOUT(RULE_WQE_OPERATION, qp),
        "A work request in the send queue of queue pair 0x%x has the operation 0x%02x, which such queue pairs do "
        "not have, or which lacks its parts (index %u)",
        qp->number, mistake->found, mistake->index);
}

static void see_index(const struct shadow *qp, const struct calls_form_mistake *mistake)
{
    finding_add(HOOKS_ABOUT(RULE_WQE_INDEX, qp),
                "A work request in the send queue of queue pair 0x%x has the index %u, and its place is %u", qp->number,
                mistake->found, mistake->wanted);
}

static void see_unfenced(const struct shadow *qp, const struct calls_form_mistake *mistake)
{
    finding_add(HOOKS_ABOUT(RULE_WQE_FENCE, qp),
                "A work request of queue pair 0x%x sends memory that a READ or atomic before it is to fill, and has no "
                "fence (index %u and %u)",
                qp->number, mistake->index, mistake->found);
}

static void see_consumed(const struct shadow *cq, const struct calls_form_mistake *mistake)
{
    finding_add(HOOKS_ABOUT(RULE_CQ_INDEX_AHEAD, cq),
                "The program says that it has consumed %u entries of the %s, and %u were written "
                "(modulo 2^24)",
                mistake->found, SHADOW_NAMED(cq), mistake->wanted);
}

static void see_form(const struct shadow *shadow, const struct calls_form_mistake *mistake)
{
    static void (*const kinds[])(const struct shadow *, const struct calls_form_mistake *) = {
        [CALLS_FORM_UNITS] = see_units,       [CALLS_FORM_OVERRUN] = see_overrun,
        [CALLS_FORM_NUMBER] = see_number,     [CALLS_FORM_OPERATION] = see_operation,
        [CALLS_FORM_INDEX] = see_index,       [CALLS_FORM_UNFENCED] = see_unfenced,
        [CALLS_FORM_CONSUMED] = see_consumed,
    };
    kinds[mistake->kind](shadow, mistake);
}

const struct hooks rules_forms = {.formed = see_form};
