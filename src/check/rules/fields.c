/* Fields of completions that a program may read. */
#include "check/hooks.h"

static void report_field(const struct shadow *cq, enum rule rule, const char *call, const char *why)
{
    finding_add(HOOKS_ABOUT(rule, cq), "%s reads a field of the %s %s", call, SHADOW_NAMED(cq), why);
}

static void read_field(struct shadow *cq, uint64_t flag, const char *call)
{
    const struct ibv_cq_ex *shown = cq->handle;
    if (flag & ~cq->cq.wc_flags)
        report_field(cq, RULE_FIELD_NOT_ASKED, call, "that ibv_create_cq_ex was not asked for");
    else if (shown->status && flag != IBV_WC_EX_WITH_QP_NUM)
        report_field(cq, RULE_FAILED_FIELD, call,
                     "whose entry has failed, so that only wr_id, status, qp_num and vendor_err are valid");
}

const struct hooks rules_fields = {.read_field = read_field};
