/* Flow rules of ibv_create_flow(3), checked once and then matched against frames. Pure. */
#pragma once

#include <infiniband/verbs.h> /* structures and enums; no function of it is called */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/diag.h"
#include "wire/ether.h"

enum { FLOW_COUNTERS_MAX = 8, FLOW_FILTER_MAX = 40 };

/* A header that a frame must have, and its bits that matter: `value` and `mask` have the layout of the header's
 * first `size` bytes on the wire. */
struct flow_match {
    uint8_t kind; /* enum ether_kind */
    bool inner;
    bool tagged;              /* Ethernet: some bit of the VLAN tag matters */
    uint16_t tag, tag_mask;   /* Ethernet */
    uint16_t type, type_mask; /* Ethernet: after the last tag */
    uint8_t below;            /* MPLS: the kind of the layer under the stack, ETHER_END: any */
    uint8_t depth;            /* MPLS: entries of the stack above this one */
    uint8_t size;
    uint8_t value[FLOW_FILTER_MAX], mask[FLOW_FILTER_MAX];
    uint32_t key, key_mask; /* GRE, whose key may be in two places */
};

struct flow_rule {
    uint32_t tag; /* IBV_FLOW_SPEC_ACTION_TAG; 0: no tag */
    bool has_tag, drops;
    unsigned counters_count;
    struct ibv_counters *counters[FLOW_COUNTERS_MAX];
    unsigned count;
    struct flow_match matches[];
};

/* Returns the most bytes of the rule that these attributes make. */
static inline size_t flow_rule_size(const struct ibv_flow_attr *attr)
{
    return sizeof(struct flow_rule) + attr->num_of_specs * sizeof(struct flow_match);
}

/* Reads the specifications after the attributes, of any alignment and no more than their sizes say, into a rule of
 * flow_rule_size. REASON_FLOW_SPEC, REASON_FLOW_ACTION, or REASON_NONE. */
enum reason flow_compile(struct flow_rule *, const struct ibv_flow_attr *);

/* Returns true if the frame has all headers that the rule names, with these bits. */
bool flow_matches(const struct flow_rule *, const struct ether *);

/* Returns the destination that every frame of this rule has; NULL: frames may have several. */
const uint8_t *flow_destination(const struct flow_rule *);
