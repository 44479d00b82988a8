/* Attributes of queue pairs that are legal and often regretted. */
#include "calls/questions.h"
#include "check/hooks.h"

static void note(const struct shadow *qp, enum rule rule, const char *what)
{
    finding_add(HOOKS_ABOUT(rule, qp), "Queue pair 0x%x has %s", qp->number, what);
}

/* A value that is this device's maximum is not reported: a program that queries it is right on other devices, too. */
static void judge_depth(const struct shadow *qp, unsigned depth, const char *attribute)
{
    enum { USUAL = 16 };
    uint32_t most = depth > USUAL ? calls_questions->max_rd_atomic((struct ibv_context *)qp->context) : 0;
    if (depth >= most)
        return;
    finding_add(HOOKS_ABOUT(RULE_RD_ATOMIC_HIGH, qp), "Queue pair 0x%x has %s %u, and adapters take 16", qp->number,
                attribute, depth);
}

static void modified(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum { ENDLESS = 7 };
    if (mask & IBV_QP_TIMEOUT && !attr->timeout)
        note(qp, RULE_TIMEOUT_ZERO, "timeout 0, which waits for an ACK without end");
    if (mask & IBV_QP_RETRY_CNT && !attr->retry_cnt)
        note(qp, RULE_RETRY_ZERO, "retry_cnt 0, so that it fails at the first lost packet");
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        judge_depth(qp, attr->max_rd_atomic, "max_rd_atomic");
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        judge_depth(qp, attr->max_dest_rd_atomic, "max_dest_rd_atomic");
    if (mask & IBV_QP_RNR_RETRY && attr->rnr_retry == ENDLESS)
        note(qp, RULE_RNR_RETRY_ENDLESS, "rnr_retry 7, which waits for a receive of its peer without end");
}

const struct hooks rules_attributes = {.modified = modified};
