/* Adapters need a hop limit, GIDs of one family, and address handles that live as long as their datagrams. */
#include "calls/questions.h"
#include "check/hooks.h"
#include "wire/grh.h"

static void judge_families(const struct shadow *shadow, const struct ibv_ah_attr *attr)
{
    union ibv_gid from;
    if (!attr->is_global ||
        !calls_questions->ip_gid((struct ibv_context *)shadow->context, attr->grh.sgid_index, &from))
        return;
    bool from_ipv4 = grh_is_ipv4(from.raw), to_ipv4 = grh_is_ipv4(attr->grh.dgid.raw);
    if (from_ipv4 != to_ipv4)
        finding_add(HOOKS_ABOUT(RULE_GID_FAMILIES, shadow),
                    "The GID at sgid_index %u is one of IPv%u, and dgid one of IPv%u", attr->grh.sgid_index,
                    from_ipv4 ? 4 : 6, to_ipv4 ? 4 : 6);
}

/* Devices of vendors' own transports look at the GID alone. */
static void addressed(struct shadow *ah, const struct ibv_ah_attr *attr)
{
    if (attr->is_global && !attr->grh.hop_limit && !hooks_is_vendors(ah->context))
        finding_add(HOOKS_ABOUT(RULE_HOP_LIMIT_ZERO, ah),
                    "An address handle has is_global 1 and hop_limit 0, with which no datagram needs to arrive");
    judge_families(ah, attr);
}

static const struct wqe *find_datagram(const struct shadow *qp, const void *ah)
{
    const struct wqe_queue *sends = &qp->qp.sends;
    bool fails = qp->qp.state == IBV_QPS_ERR || qp->qp.state == IBV_QPS_SQE;
    for (uint32_t at = 0; !fails && at < sends->count; at++)
        if (wqe_at(sends, at)->ah == ah && (wqe_at(sends, at)->flags & (WQE_SIGNALED | WQE_UNSURE)) == WQE_SIGNALED)
            return wqe_at(sends, at);
    return NULL;
}

static void destroying_ah(struct shadow *ah)
{
    const struct shadow *qp;
    const struct wqe *wqe = NULL;
    if (ah->kind != SHADOW_AH || !rule_chosen.rules[RULE_AH_IN_USE])
        return;
    TAILQ_FOREACH (qp, shadow_all(), siblings) {
        wqe = qp->kind == SHADOW_QP && qp->qp.datagrams ? find_datagram(qp, ah->handle) : NULL;
        if (wqe)
            break;
    }
    if (!wqe)
        return;
    finding_add(HOOKS_ABOUT(RULE_AH_IN_USE, ah, .posted = wqe->posted),
                "An address handle is destroyed before the completion of a %s of queue pair 0x%x was polled "
                "(wr_id %llu)",
                wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id);
}

static void refused_peers(struct shadow *qp, const struct calls_refused *refused)
{
    if (!refused->unaddressed)
        return;
    finding_add(
        HOOKS_ABOUT(RULE_ADDRESS_MISSING, qp),
        "Queue pair 0x%x has refused READs or WRITEs of peers (packets: %llu) to which no address handle of its "
        "protection domain led then",
        qp->number, (unsigned long long)refused->unaddressed);
}

static void modified(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_AV)
        judge_families(qp, &attr->ah_attr);
}

const struct hooks rules_addresses = {
    .addressed = addressed,
    .destroying = destroying_ah,
    .refused_peers = refused_peers,
    .modified = modified,
};
