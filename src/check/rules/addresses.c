/* What address handles need on adapters. */
#include "check/findings/finding.h"
#include "check/hooks.h"

static void addressed(struct shadow *ah, const struct ibv_ah_attr *attr)
{
    if (!attr->is_global || attr->grh.hop_limit)
        return;
    finding_add(&(struct finding_about){.rule = RULE_HOP_LIMIT_ZERO,
                                        .kind = shadow_kind_name(ah->kind),
                                        .number = ah->number,
                                        .created = &ah->created},
                "An address handle has is_global 1 and hop_limit 0, with which no datagram needs to arrive");
}

const struct hooks rules_addresses = {.addressed = addressed};
