/* Attributes of queue pairs that are legal and often regretted. */
#include "check/findings/finding.h"
#include "check/hooks.h"

static void note(const struct shadow *qp, enum rule rule, const char *what)
{
    finding_add(
        &(struct finding_about){
            .rule = rule, .kind = shadow_kind_name(qp->kind), .number = qp->number, .created = &qp->created},
        "Queue pair 0x%x has %s", qp->number, what);
}

static void modified(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum { ENDLESS = 7 };
    if (mask & IBV_QP_TIMEOUT && !attr->timeout)
        note(qp, RULE_TIMEOUT_ZERO, "timeout 0, which waits for an ACK without end");
    if (mask & IBV_QP_RETRY_CNT && !attr->retry_cnt)
        note(qp, RULE_RETRY_ZERO, "retry_cnt 0, so that it fails at the first lost packet");
    if (mask & IBV_QP_RNR_RETRY && attr->rnr_retry == ENDLESS)
        note(qp, RULE_RNR_RETRY_ENDLESS, "rnr_retry 7, which waits for a receive of its peer without end");
}

const struct hooks rules_attributes = {.modified = modified};
