/* What addresses need on adapters. */
#include "check/findings/finding.h"
#include "check/hooks.h"
#include "config/device_state.h"
#include "config/gid.h"
#include "config/link_layer.h"
#include "verbs/context/context.h"

static struct finding_about about(enum rule rule, const struct shadow *shadow)
{
    return (struct finding_about){
        .rule = rule, .kind = shadow_kind_name(shadow->kind), .number = shadow->number, .created = &shadow->created};
}

/* Between devices without a network interface packets need no header of IP. */
static void judge_families(const struct shadow *shadow, const struct ibv_ah_attr *attr)
{
    const struct device *device = context_of((struct ibv_context *)shadow->context)->device;
    const struct device_state *now = device_now(device);
    const struct finding_about what = about(RULE_GID_FAMILIES, shadow);
    if (!attr->is_global || link_layer_is_infiniband(device) || !device_state_has(now, attr->grh.sgid_index))
        return;
    bool from_ipv4 = gid_is_ipv4(&now->gids[attr->grh.sgid_index]), to_ipv4 = gid_is_ipv4(&attr->grh.dgid);
    if (from_ipv4 != to_ipv4)
        finding_add(&what, "The GID at sgid_index %u is one of IPv%u, and dgid one of IPv%u", attr->grh.sgid_index,
                    from_ipv4 ? 4 : 6, to_ipv4 ? 4 : 6);
}

static void addressed(struct shadow *ah, const struct ibv_ah_attr *attr)
{
    const struct finding_about what = about(RULE_HOP_LIMIT_ZERO, ah);
    if (attr->is_global && !attr->grh.hop_limit)
        finding_add(&what, "An address handle has is_global 1 and hop_limit 0, with which no datagram needs to arrive");
    judge_families(ah, attr);
}

static void modified(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_AV)
        judge_families(qp, &attr->ah_attr);
}

const struct hooks rules_addresses = {.addressed = addressed, .modified = modified};
