#include "verbs/kinds/ethernet/flow_match.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "wire/bytes.h"

/* Puts a field of the filter where the header has it. Filters are in network order already. */
#define PLACE(match, at, spec, field)                                                                                  \
    do {                                                                                                               \
        memcpy((match)->value + (at), &(spec)->val.field, sizeof(spec)->val.field);                                    \
        memcpy((match)->mask + (at), &(spec)->mask.field, sizeof(spec)->mask.field);                                   \
    } while (0)

typedef enum reason compile(struct flow_match *, const struct ibv_flow_spec *);

static enum reason compile_eth(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_eth *eth = &spec->eth;
    PLACE(match, 0, eth, dst_mac);
    PLACE(match, 6, eth, src_mac);
    match->size = 12;
    match->type = ntohs(eth->val.ether_type);
    match->type_mask = ntohs(eth->mask.ether_type);
    match->tag = ntohs(eth->val.vlan_tag);
    match->tag_mask = ntohs(eth->mask.vlan_tag);
    match->tagged = match->tag_mask;
    return REASON_NONE;
}

static enum reason compile_ipv4(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_ipv4 *ipv4 = &spec->ipv4;
    PLACE(match, 12, ipv4, src_ip);
    PLACE(match, 16, ipv4, dst_ip);
    match->size = 20;
    return REASON_NONE;
}

/* The kernel's enum ib_ipv4_flags counts the header's three flags from its most significant bit: 2 is "don't fragment",
 * 4 "more fragments". */
static uint8_t place_flags(uint8_t flags)
{
    return (uint8_t)((flags & 1) << 7 | (flags & 2) << 5 | (flags & 4) << 3);
}

static enum reason compile_ipv4_ext(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_ipv4_ext *ipv4 = &spec->ipv4_ext;
    PLACE(match, 1, ipv4, tos);
    PLACE(match, 8, ipv4, ttl);
    PLACE(match, 9, ipv4, proto);
    PLACE(match, 12, ipv4, src_ip);
    PLACE(match, 16, ipv4, dst_ip);
    match->value[6] = place_flags(ipv4->val.flags);
    match->mask[6] = place_flags(ipv4->mask.flags);
    match->size = 20;
    return ipv4->mask.flags & ~7u ? REASON_FLOW_SPEC : REASON_NONE;
}

static enum reason compile_ipv6(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_ipv6 *ipv6 = &spec->ipv6;
    const uint32_t label = 0xfffff;
    PLACE(match, 6, ipv6, next_hdr);
    PLACE(match, 7, ipv6, hop_limit);
    PLACE(match, 8, ipv6, src_ip);
    PLACE(match, 24, ipv6, dst_ip);
    bytes_put32(match->value, (uint32_t)ipv6->val.traffic_class << 20 | (ntohl(ipv6->val.flow_label) & label));
    bytes_put32(match->mask, (uint32_t)ipv6->mask.traffic_class << 20 | (ntohl(ipv6->mask.flow_label) & label));
    match->size = 40;
    return ntohl(ipv6->mask.flow_label) & ~label ? REASON_FLOW_SPEC : REASON_NONE;
}

static enum reason compile_ports(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_tcp_udp *ports = &spec->tcp_udp;
    PLACE(match, 0, ports, src_port);
    PLACE(match, 2, ports, dst_port);
    match->size = 4;
    return REASON_NONE;
}

static enum reason compile_esp(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_esp *esp = &spec->esp;
    PLACE(match, 0, esp, spi);
    PLACE(match, 4, esp, seq);
    match->size = 8;
    return REASON_NONE;
}

/* A VXLAN network identifier has 24 bits. */
static enum reason compile_vxlan(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_tunnel *tunnel = &spec->tunnel;
    const uint32_t most = 0xffffff;
    if (ntohl(tunnel->val.tunnel_id) & ntohl(tunnel->mask.tunnel_id) & ~most)
        return REASON_FLOW_SPEC;
    bytes_put32(match->value + 4, ntohl(tunnel->val.tunnel_id) << 8);
    bytes_put32(match->mask + 4, ntohl(tunnel->mask.tunnel_id) << 8);
    match->size = 8;
    return REASON_NONE;
}

static enum reason compile_gre(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_gre *gre = &spec->gre;
    PLACE(match, 0, gre, c_ks_res0_ver);
    PLACE(match, 2, gre, protocol);
    match->key = ntohl(gre->val.key);
    match->key_mask = ntohl(gre->mask.key);
    match->size = 4;
    return REASON_NONE;
}

static enum reason compile_mpls(struct flow_match *match, const struct ibv_flow_spec *spec)
{
    const struct ibv_flow_spec_mpls *mpls = &spec->mpls;
    PLACE(match, 0, mpls, label);
    match->size = 4;
    return REASON_NONE;
}

static const struct {
    enum ibv_flow_spec_type type;
    uint8_t kind;
    uint16_t size;
    compile *compile;
} headers[] = {
    {IBV_FLOW_SPEC_ETH, ETHER_ETHERNET, sizeof(struct ibv_flow_spec_eth), compile_eth},
    {IBV_FLOW_SPEC_IPV4, ETHER_IPV4, sizeof(struct ibv_flow_spec_ipv4), compile_ipv4},
    {IBV_FLOW_SPEC_IPV4_EXT, ETHER_IPV4, sizeof(struct ibv_flow_spec_ipv4_ext), compile_ipv4_ext},
    {IBV_FLOW_SPEC_IPV6, ETHER_IPV6, sizeof(struct ibv_flow_spec_ipv6), compile_ipv6},
    {IBV_FLOW_SPEC_TCP, ETHER_TCP, sizeof(struct ibv_flow_spec_tcp_udp), compile_ports},
    {IBV_FLOW_SPEC_UDP, ETHER_UDP, sizeof(struct ibv_flow_spec_tcp_udp), compile_ports},
    {IBV_FLOW_SPEC_ESP, ETHER_ESP, sizeof(struct ibv_flow_spec_esp), compile_esp},
    {IBV_FLOW_SPEC_VXLAN_TUNNEL, ETHER_VXLAN, sizeof(struct ibv_flow_spec_tunnel), compile_vxlan},
    {IBV_FLOW_SPEC_GRE, ETHER_GRE, sizeof(struct ibv_flow_spec_gre), compile_gre},
    {IBV_FLOW_SPEC_MPLS, ETHER_MPLS, sizeof(struct ibv_flow_spec_mpls), compile_mpls},
};

/* Refuses a header that the rule has already, except MPLS: entries of its stack follow one another in the rule as in
 * the frame. */
static enum reason place_in_stack(const struct flow_rule *rule, struct flow_match *match)
{
    for (unsigned i = 0; i < rule->count; i++)
        if (match->kind != ETHER_MPLS && rule->matches[i].kind == match->kind && rule->matches[i].inner == match->inner)
            return REASON_FLOW_SPEC;
    const struct flow_match *before = rule->count ? &rule->matches[rule->count - 1] : NULL;
    if (match->kind != ETHER_MPLS || !before)
        return REASON_NONE;
    bool continues = before->kind == ETHER_MPLS && before->inner == match->inner;
    match->below = continues ? before->below : before->kind;
    match->depth = continues ? (uint8_t)(before->depth + 1) : 0;
    return REASON_NONE;
}

static enum reason compile_header(struct flow_rule *rule, const struct ibv_flow_spec *spec)
{
    const unsigned inner = IBV_FLOW_SPEC_INNER;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        if (headers[i].type != ((unsigned)spec->hdr.type & ~inner))
            continue;
        if (spec->hdr.size != headers[i].size)
            return REASON_FLOW_SPEC;
        struct flow_match *match = &rule->matches[rule->count];
        *match = (struct flow_match){.kind = headers[i].kind, .inner = (unsigned)spec->hdr.type & inner};
        enum reason reason = headers[i].compile(match, spec);
        if (!reason)
            reason = place_in_stack(rule, match);
        rule->count++;
        return reason;
    }
    return REASON_FLOW_SPEC;
}

static enum reason compile_count(struct flow_rule *rule, const struct ibv_flow_spec *spec)
{
    if (spec->hdr.size != sizeof spec->flow_count || !spec->flow_count.counters ||
        rule->counters_count == FLOW_COUNTERS_MAX)
        return REASON_FLOW_SPEC;
    rule->counters[rule->counters_count++] = spec->flow_count.counters;
    return REASON_NONE;
}

static enum reason compile_spec(struct flow_rule *rule, const struct ibv_flow_spec *spec)
{
    switch (spec->hdr.type) {
    case IBV_FLOW_SPEC_ACTION_TAG:
        if (spec->hdr.size != sizeof spec->flow_tag || rule->has_tag)
            return REASON_FLOW_SPEC;
        rule->has_tag = true;
        rule->tag = spec->flow_tag.tag_id;
        return REASON_NONE;
    case IBV_FLOW_SPEC_ACTION_DROP:
        rule->drops = true;
        return spec->hdr.size == sizeof spec->drop ? REASON_NONE : REASON_FLOW_SPEC;
    case IBV_FLOW_SPEC_ACTION_COUNT:
        return compile_count(rule, spec);
    case IBV_FLOW_SPEC_ACTION_HANDLE:
        return REASON_FLOW_ACTION;
    default:
        return compile_header(rule, spec);
    }
}

enum reason flow_compile(struct flow_rule *rule, const struct ibv_flow_attr *attr)
{
    const char *at = (const char *)(attr + 1);
    enum reason reason = REASON_NONE;
    memset(rule, 0, sizeof *rule);
    for (unsigned i = 0; i < attr->num_of_specs && !reason; i++) {
        struct ibv_flow_spec spec = {0};
        memcpy(&spec.hdr, at, offsetof(struct ibv_flow_spec, hdr.size) + sizeof spec.hdr.size);
        memcpy(&spec, at, spec.hdr.size < sizeof spec ? spec.hdr.size : sizeof spec);
        reason = compile_spec(rule, &spec);
        at += spec.hdr.size;
    }
    return reason;
}

static bool bits_match(const struct flow_match *match, const uint8_t *header)
{
    for (unsigned i = 0; i < match->size; i++)
        if ((header[i] ^ match->value[i]) & match->mask[i])
            return false;
    return true;
}

/* Returns true if the key matches, which follows the checksum if the header has one (RFC 2890). */
static bool gre_key_matches(const struct flow_match *match, const uint8_t *header)
{
    enum { CHECKSUM = 0x80, KEY = 0x20 };
    if (!match->key_mask)
        return true;
    if (!(header[0] & KEY))
        return false;
    uint32_t key = bytes_get32(header + (header[0] & CHECKSUM ? 8 : 4));
    return !((key ^ match->key) & match->key_mask);
}

static bool ethernet_matches(const struct flow_match *match, const struct ether_layer *layer)
{
    if ((layer->type ^ match->type) & match->type_mask)
        return false;
    return !match->tagged || (layer->tagged && !((layer->tag ^ match->tag) & match->tag_mask));
}

/* Returns the entry of the stack that the rule names: `depth` entries under the first one on the layer `below`. */
static const struct ether_layer *find_label(const struct ether *frame, const struct flow_match *match)
{
    for (unsigned i = 0; i + match->depth < frame->count; i++) {
        const struct ether_layer *first = &frame->layers[i], *layer = first + match->depth;
        bool top = first->kind == ETHER_MPLS && (!i || first[-1].kind != ETHER_MPLS);
        bool on_it = match->below == ETHER_END || (i && first[-1].kind == match->below);
        if (top && on_it && first->inner == match->inner && layer->kind == ETHER_MPLS)
            return layer;
    }
    return NULL;
}

static bool header_matches(const struct flow_match *match, const struct ether *frame)
{
    const struct ether_layer *layer =
        match->kind == ETHER_MPLS ? find_label(frame, match) : ether_find(frame, match->kind, match->inner);
    if (!layer || !bits_match(match, ether_header(frame, layer)))
        return false;
    if (match->kind == ETHER_GRE)
        return gre_key_matches(match, ether_header(frame, layer));
    return match->kind != ETHER_ETHERNET || ethernet_matches(match, layer);
}

bool flow_matches(const struct flow_rule *rule, const struct ether *frame)
{
    for (unsigned i = 0; i < rule->count; i++)
        if (!header_matches(&rule->matches[i], frame))
            return false;
    return true;
}

const uint8_t *flow_destination(const struct flow_rule *rule)
{
    static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (unsigned i = 0; i < rule->count; i++) {
        const struct flow_match *match = &rule->matches[i];
        if (match->kind == ETHER_ETHERNET && !match->inner && !memcmp(match->mask, all, sizeof all))
            return match->value;
    }
    return NULL;
}
