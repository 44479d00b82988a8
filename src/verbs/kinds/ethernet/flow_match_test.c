#include "verbs/kinds/ethernet/flow_match.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/ether_frames.h"

enum { TCP = 6, UDP = 17, GRE = 47, ESP = 50, INNER = IBV_FLOW_SPEC_INNER };

/* ---- rules: a row describes one; unsaid fields are 0, as the manual page asks for */

struct specs {
    struct ibv_flow_attr attr;
    char bytes[512];
    size_t length;
};

static void add_spec(struct specs *specs, const void *spec, size_t size)
{
    memcpy(specs->bytes + specs->length, spec, size);
    specs->length += size;
    specs->attr.num_of_specs++;
}
#define ADD(specs, kind, flow_type, ...)                                                                               \
    add_spec(specs,                                                                                                    \
             &(struct ibv_flow_spec_##kind){.type = (enum ibv_flow_spec_type)(flow_type),                              \
                                            .size = sizeof(struct ibv_flow_spec_##kind),                               \
                                            __VA_ARGS__},                                                              \
             sizeof(struct ibv_flow_spec_##kind))

static enum reason try_compile(const struct specs *specs, struct flow_rule **rule)
{
    /* at an odd address, as packed structures of programs may have it */
    char *copy = malloc(sizeof specs->attr + specs->length);
    memcpy(copy, &specs->attr, sizeof specs->attr);
    memcpy(copy + sizeof specs->attr, specs->bytes, specs->length);
    struct ibv_flow_attr *attr = (struct ibv_flow_attr *)copy;
    *rule = calloc(1, flow_rule_size(attr));
    enum reason reason = flow_compile(*rule, attr);
    free(copy);
    return reason;
}

static bool matches(const struct specs *specs, struct frame_maker *maker)
{
    struct ether ether = frame_finish(maker);
    struct flow_rule *rule;
    assert_int_equal(try_compile(specs, &rule), REASON_NONE);
    bool result = flow_matches(rule, &ether);
    free(rule);
    return result;
}

static enum reason refusal(const struct specs *specs)
{
    struct flow_rule *rule;
    enum reason reason = try_compile(specs, &rule);
    free(rule);
    return reason;
}

/* ---- frames */

static const uint8_t here[16] = {0x20, 0x01, [15] = 1}, there[16] = {0x20, 0x01, [15] = 2};

static struct frame_maker udp4(void)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_VLAN);
    frame_tag(&maker, 0x2064, ETHER_TYPE_IPV4);
    uint8_t *ip = frame_ipv4(&maker, UDP, 0x0a000001, 0x0a000002);
    ip[1] = 0x28;
    ip[6] = 0x40; /* don't fragment */
    frame_udp(&maker, 1000, 2000);
    frame_data(&maker, 20);
    return maker;
}

static struct frame_maker tcp6(void)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV6);
    bytes_put32(frame_ipv6(&maker, TCP, here, there), 0x6ab12345);
    frame_tcp(&maker, 1000, 2000);
    return maker;
}

static struct frame_maker vxlan(void)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 5, 4789);
    frame_word(&maker, 0x08000000);
    frame_word(&maker, 0x123456 << 8);
    frame_ethernet(&maker, 3, 4, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, TCP, 3, 4);
    frame_tcp(&maker, 7, 8);
    return maker;
}

/* ---- what matches */

static void a_rule_without_headers_matches_everything(void **state)
{
    struct specs specs = {0};
    struct frame_maker four = udp4(), six = tcp6();
    assert_true(matches(&specs, &four));
    assert_true(matches(&specs, &six));
}

static void ethernet_fields(void **state)
{
    static const struct {
        struct ibv_flow_eth_filter value, mask;
        bool matches;
    } rows[] = {
        {{{2, 0, 0, 0, 0, 1}, {0}, 0, 0}, {{255, 255, 255, 255, 255, 255}, {0}, 0, 0}, true},
        {{{2, 0, 0, 0, 0, 3}, {0}, 0, 0}, {{255, 255, 255, 255, 255, 255}, {0}, 0, 0}, false},
        {{{2, 0, 0, 0, 0, 3}, {0}, 0, 0}, {{255, 255, 255, 255, 255, 1}, {0}, 0, 0}, true},
        {{{0}, {2, 0, 0, 0, 0, 2}, 0, 0}, {{0}, {255, 255, 255, 255, 255, 255}, 0, 0}, true},
        {{{0}, {2, 0, 0, 0, 0, 1}, 0, 0}, {{0}, {255, 255, 255, 255, 255, 255}, 0, 0}, false},
        {{{9}, {9}, 9, 9}, {{0}, {0}, 0, 0}, true},
        {{{0}, {0}, 0x0008, 0}, {{0}, {0}, 0xffff, 0}, true}, /* network order */
        {{{0}, {0}, 0xdd86, 0}, {{0}, {0}, 0xffff, 0}, false},
        {{{0}, {0}, 0, 0x6420}, {{0}, {0}, 0, 0xffff}, true},
        {{{0}, {0}, 0, 0x6400}, {{0}, {0}, 0, 0xff0f}, true}, /* the VLAN id only */
        {{{0}, {0}, 0, 0x6500}, {{0}, {0}, 0, 0xff0f}, false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct frame_maker maker = udp4();
        struct specs specs = {0};
        ADD(&specs, eth, IBV_FLOW_SPEC_ETH, .val = rows[i].value, .mask = rows[i].mask);
        assert_int_equal(matches(&specs, &maker), rows[i].matches);
    }
}

static void an_untagged_frame_has_no_tag_of_zero(void **state)
{
    struct frame_maker maker = tcp6();
    struct specs specs = {0};
    ADD(&specs, eth, IBV_FLOW_SPEC_ETH, .mask.vlan_tag = 0xffff);
    assert_false(matches(&specs, &maker));
}

static void ipv4_fields(void **state)
{
    static const struct {
        struct ibv_flow_ipv4_ext_filter value, mask;
        bool matches;
    } rows[] = {
        {{.src_ip = 0x0100000a}, {.src_ip = 0xffffffff}, true},
        {{.src_ip = 0x0200000a}, {.src_ip = 0xffffffff}, false},
        {{.dst_ip = 0x0200000a}, {.dst_ip = 0xffffffff}, true},
        {{.dst_ip = 0x0900000a}, {.dst_ip = 0x00ffffff}, true},
        {{.proto = UDP}, {.proto = 0xff}, true},
        {{.proto = TCP}, {.proto = 0xff}, false},
        {{.tos = 0x28}, {.tos = 0xff}, true},
        {{.tos = 0x29}, {.tos = 0xff}, false},
        {{.ttl = 64}, {.ttl = 0xff}, true},
        {{.ttl = 63}, {.ttl = 0xff}, false},
        {{.flags = 2}, {.flags = 2}, true},
        {{.flags = 0}, {.flags = 4}, true},
        {{.flags = 4}, {.flags = 4}, false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct frame_maker maker = udp4(), six = tcp6();
        struct specs specs = {0};
        ADD(&specs, ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT, .val = rows[i].value, .mask = rows[i].mask);
        assert_int_equal(matches(&specs, &maker), rows[i].matches);
        assert_false(matches(&specs, &six));
    }
    struct frame_maker maker = udp4();
    struct specs specs = {0};
    ADD(&specs, ipv4, IBV_FLOW_SPEC_IPV4, .val.src_ip = htonl(0x0a000001), .mask.src_ip = 0xffffffff);
    assert_true(matches(&specs, &maker));
}

/* Reserved, don't fragment, more fragments, from the header's most significant bit on. */
static void each_flag_of_ipv4_is_its_bit(void **state)
{
    for (unsigned set = 0; set < 3; set++)
        for (unsigned asked = 0; asked < 3; asked++) {
            struct frame_maker maker = {0};
            struct specs specs = {0};
            frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
            frame_ipv4(&maker, UDP, 1, 2)[6] = (uint8_t)(0x80 >> set);
            ADD(&specs, ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT, .val.flags = (uint8_t)(1 << asked),
                .mask.flags = (uint8_t)(1 << asked));
            assert_int_equal(matches(&specs, &maker), set == asked);
        }
}

static void ipv6_fields(void **state)
{
    static const struct {
        struct ibv_flow_ipv6_filter value, mask;
        bool matches;
    } rows[] = {
        {{.next_hdr = TCP}, {.next_hdr = 0xff}, true},
        {{.next_hdr = UDP}, {.next_hdr = 0xff}, false},
        {{.traffic_class = 0xab}, {.traffic_class = 0xff}, true},
        {{.traffic_class = 0xaa}, {.traffic_class = 0xff}, false},
        {{.flow_label = 0x45230100}, {.flow_label = 0xffff0f00}, true},
        {{.flow_label = 0x46230100}, {.flow_label = 0xffff0f00}, false},
        {{.hop_limit = 64}, {.hop_limit = 0xff}, true},
        {{.src_ip = {0x20, 0x01}}, {.src_ip = {255, 255, 255}}, true},
        {{.src_ip = {0x20, 0x02}}, {.src_ip = {255, 255, 255}}, false},
        {{.dst_ip = {[15] = 2}}, {.dst_ip = {[15] = 255}}, true},
        {{.dst_ip = {[15] = 1}}, {.dst_ip = {[15] = 255}}, false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct frame_maker maker = tcp6(), four = udp4();
        struct specs specs = {0};
        ADD(&specs, ipv6, IBV_FLOW_SPEC_IPV6, .val = rows[i].value, .mask = rows[i].mask);
        assert_int_equal(matches(&specs, &maker), rows[i].matches);
        assert_false(matches(&specs, &four));
    }
}

static void ports_belong_to_their_protocol(void **state)
{
    struct frame_maker udp = udp4(), tcp = tcp6();
    struct specs specs = {0}, other = {0};
    ADD(&specs, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = htons(2000), .src_port = htons(1000)},
        .mask = {.dst_port = 0xffff, .src_port = 0xffff});
    ADD(&other, tcp_udp, IBV_FLOW_SPEC_TCP, .val.dst_port = htons(1000), .mask.dst_port = 0xffff);
    assert_true(matches(&specs, &udp));
    assert_false(matches(&specs, &tcp));
    assert_false(matches(&other, &tcp));
}

static void all_headers_of_a_rule_must_match(void **state)
{
    for (uint16_t port = 1999; port < 2001; port++) {
        struct frame_maker maker = udp4();
        struct specs specs = {0};
        ADD(&specs, tcp_udp, IBV_FLOW_SPEC_UDP, .val.dst_port = htons(port), .mask.dst_port = 0xffff);
        ADD(&specs, ipv4, IBV_FLOW_SPEC_IPV4, .val.dst_ip = htonl(0x0a000002), .mask.dst_ip = 0xffffffff);
        assert_int_equal(matches(&specs, &maker), port == 2000);
    }
}

static void a_tunnel_has_an_outside_and_an_inside(void **state)
{
    static const struct {
        uint32_t network;
        uint8_t outer, inner;
        bool matches;
    } rows[] = {{0x123456, 1, 3, true}, {0x123457, 1, 3, false}, {0x123456, 3, 1, false}, {0x123456, 1, 4, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct frame_maker maker = vxlan();
        struct specs specs = {0};
        ADD(&specs, ipv4, IBV_FLOW_SPEC_IPV4, .val.src_ip = htonl(rows[i].outer), .mask.src_ip = 0xffffffff);
        ADD(&specs, tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL, .val.tunnel_id = htonl(rows[i].network),
            .mask.tunnel_id = htonl(0xffffff));
        ADD(&specs, ipv4, IBV_FLOW_SPEC_IPV4 | INNER, .val.src_ip = htonl(rows[i].inner), .mask.src_ip = 0xffffffff);
        assert_int_equal(matches(&specs, &maker), rows[i].matches);
    }
}

static void a_gre_key_is_found_with_and_without_a_checksum(void **state)
{
    for (uint32_t flags = 0; flags < 4; flags++) {
        struct frame_maker maker = {0};
        struct specs specs = {0}, protocol = {0};
        frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
        frame_ipv4(&maker, GRE, 1, 2);
        frame_word(&maker, (flags & 1) << 31 | flags >> 1 << 29 | ETHER_TYPE_IPV4);
        if (flags & 1)
            frame_word(&maker, 0x99999999);
        frame_word(&maker, 0x12345678);
        ADD(&specs, gre, IBV_FLOW_SPEC_GRE, .val.key = htonl(0x12345678), .mask.key = 0xffffffff);
        ADD(&protocol, gre, IBV_FLOW_SPEC_GRE, .val.protocol = htons(ETHER_TYPE_IPV4), .mask.protocol = 0xffff);
        assert_int_equal(matches(&specs, &maker), flags >> 1);
        assert_true(matches(&protocol, &maker));
    }
}

static void labels_are_matched_in_the_order_of_the_stack(void **state)
{
    static const struct {
        uint32_t first, second;
        bool behind_ethernet, matches;
    } rows[] = {{5, 6, true, true}, {6, 5, true, false}, {5, 5, true, false}, {5, 6, false, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct frame_maker maker = {0};
        struct specs specs = {0};
        frame_ethernet(&maker, 1, 2, 0x8847);
        frame_word(&maker, 5 << 12);
        frame_word(&maker, 6 << 12 | 0x100);
        if (rows[i].behind_ethernet)
            ADD(&specs, eth, IBV_FLOW_SPEC_ETH, .val.ether_type = 0);
        else
            ADD(&specs, tcp_udp, IBV_FLOW_SPEC_UDP, .val.dst_port = 0);
        ADD(&specs, mpls, IBV_FLOW_SPEC_MPLS, .val.label = htonl(rows[i].first << 12), .mask.label = htonl(0xfffff000));
        ADD(&specs, mpls, IBV_FLOW_SPEC_MPLS, .val.label = htonl(rows[i].second << 12),
            .mask.label = htonl(0xfffff000));
        assert_int_equal(matches(&specs, &maker), rows[i].matches);
    }
}

static void esp_fields(void **state)
{
    for (uint32_t spi = 7; spi < 9; spi++) {
        struct frame_maker maker = {0};
        struct specs specs = {0};
        frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
        frame_ipv4(&maker, ESP, 1, 2);
        frame_word(&maker, 7);
        frame_word(&maker, 99);
        ADD(&specs, esp, IBV_FLOW_SPEC_ESP, .val = {htonl(spi), htonl(99)}, .mask = {0xffffffff, 0xffffffff});
        assert_int_equal(matches(&specs, &maker), spi == 7);
    }
}

/* ---- actions, and what is refused */

static void actions_are_taken_over(void **state)
{
    struct specs specs = {0};
    struct flow_rule *rule;
    struct ibv_counters counters;
    ADD(&specs, action_tag, IBV_FLOW_SPEC_ACTION_TAG, .tag_id = 0x123456);
    ADD(&specs, action_drop, IBV_FLOW_SPEC_ACTION_DROP, );
    ADD(&specs, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = &counters);
    assert_int_equal(try_compile(&specs, &rule), REASON_NONE);
    assert_int_equal(rule->tag, 0x123456);
    assert_true(rule->drops);
    assert_int_equal(rule->counters_count, 1);
    assert_ptr_equal(rule->counters[0], &counters);
    assert_int_equal(rule->count, 0);
    free(rule);
}

static void rules_that_make_no_sense_are_refused(void **state)
{
    struct specs twice = {0}, size = {0}, type = {0}, network = {0}, action = {0}, label = {0}, tags = {0}, both = {0};
    ADD(&twice, eth, IBV_FLOW_SPEC_ETH, .val.ether_type = 0);
    ADD(&twice, eth, IBV_FLOW_SPEC_ETH, .val.ether_type = 0);
    assert_int_equal(refusal(&twice), REASON_FLOW_SPEC);
    add_spec(&size, &(struct ibv_flow_spec_eth){.type = IBV_FLOW_SPEC_ETH, .size = 8}, 8);
    assert_int_equal(refusal(&size), REASON_FLOW_SPEC);
    ADD(&type, eth, 0x77, .val.ether_type = 0);
    assert_int_equal(refusal(&type), REASON_FLOW_SPEC);
    ADD(&network, tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL, .val.tunnel_id = 0xffffffff, .mask.tunnel_id = 0xffffffff);
    assert_int_equal(refusal(&network), REASON_FLOW_SPEC);
    ADD(&action, action_handle, IBV_FLOW_SPEC_ACTION_HANDLE, .action = NULL);
    assert_int_equal(refusal(&action), REASON_FLOW_ACTION);
    ADD(&label, ipv6, IBV_FLOW_SPEC_IPV6, .mask.flow_label = 0xffffffff);
    assert_int_equal(refusal(&label), REASON_FLOW_SPEC);
    ADD(&tags, action_tag, IBV_FLOW_SPEC_ACTION_TAG, .tag_id = 1);
    ADD(&tags, action_tag, IBV_FLOW_SPEC_ACTION_TAG, .tag_id = 2);
    assert_int_equal(refusal(&tags), REASON_FLOW_SPEC);
    ADD(&both, ipv4, IBV_FLOW_SPEC_IPV4, .val.src_ip = 0);
    ADD(&both, ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT, .val.src_ip = 0);
    assert_int_equal(refusal(&both), REASON_FLOW_SPEC);
}

static void a_destination_is_known_when_all_its_bits_are(void **state)
{
    struct specs some = {0}, all = {0};
    struct flow_rule *rule;
    ADD(&some, eth, IBV_FLOW_SPEC_ETH, .mask.dst_mac = {255, 255, 255, 255, 255, 254});
    ADD(&all, eth, IBV_FLOW_SPEC_ETH, .val.dst_mac = {1, 2, 3, 4, 5, 6},
        .mask.dst_mac = {255, 255, 255, 255, 255, 255});
    try_compile(&some, &rule);
    assert_null(flow_destination(rule));
    free(rule);
    try_compile(&all, &rule);
    assert_memory_equal(flow_destination(rule), ((uint8_t[]){1, 2, 3, 4, 5, 6}), 6);
    free(rule);
}

/* Frames are sorted by the address outside of a tunnel, never by the inner frame's. */
static void the_address_within_a_tunnel_is_no_destination(void **state)
{
    for (unsigned outer = 0; outer < 3; outer++) { /* 0: absent; 1: before the inner one; 2: after it */
        struct specs specs = {0};
        struct flow_rule *rule;
        for (unsigned place = 1; place <= 2; place++) {
            if (place == outer)
                ADD(&specs, eth, IBV_FLOW_SPEC_ETH, .val.dst_mac = {1, 2, 3, 4, 5, 6},
                    .mask.dst_mac = {255, 255, 255, 255, 255, 255});
            if (place == 1)
                ADD(&specs, eth, IBV_FLOW_SPEC_ETH | INNER, .val.dst_mac = {9, 9, 9, 9, 9, 9},
                    .mask.dst_mac = {255, 255, 255, 255, 255, 255});
        }
        assert_int_equal(try_compile(&specs, &rule), REASON_NONE);
        if (outer)
            assert_memory_equal(flow_destination(rule), ((uint8_t[]){1, 2, 3, 4, 5, 6}), 6);
        else
            assert_null(flow_destination(rule));
        free(rule);
    }
}

/* Only Ethernet has a destination of six bytes where the header begins. */
static void another_header_is_no_destination(void **state)
{
    struct specs specs = {0};
    struct flow_rule *rule;
    ADD(&specs, gre, IBV_FLOW_SPEC_GRE, .mask = {.c_ks_res0_ver = 0xffff, .protocol = 0xffff});
    ADD(&specs, esp, IBV_FLOW_SPEC_ESP, .mask = {.spi = 0xffffffff, .seq = 0xffffffff});
    assert_int_equal(try_compile(&specs, &rule), REASON_NONE);
    assert_null(flow_destination(rule));
    free(rule);
}

/* Within a tunnel as outside of it. */
static void the_headers_within_a_tunnel_are_matched_by_their_fields(void **state)
{
    static const struct {
        uint8_t mac;
        uint16_t type, port;
        bool matches;
    } rows[] = {{3, ETHER_TYPE_IPV4, 8, true},
                {1, ETHER_TYPE_IPV4, 8, false},
                {3, ETHER_TYPE_IPV6, 8, false},
                {3, ETHER_TYPE_IPV4, 4789, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct frame_maker maker = vxlan();
        struct specs specs = {0};
        ADD(&specs, eth, IBV_FLOW_SPEC_ETH | INNER, .val = {{2, 0, 0, 0, 0, rows[i].mac}, {0}, htons(rows[i].type), 0},
            .mask = {{255, 255, 255, 255, 255, 255}, {0}, 0xffff, 0});
        ADD(&specs, tcp_udp, IBV_FLOW_SPEC_TCP | INNER, .val.dst_port = htons(rows[i].port), .mask.dst_port = 0xffff);
        assert_int_equal(matches(&specs, &maker), rows[i].matches);
    }
}

static void sizes_and_masks_that_no_header_has_are_refused(void **state)
{
    struct specs drop = {0}, tag = {0}, count = {0}, nobody = {0}, flags = {0}, inner = {0};
    struct ibv_counters counters;
    ADD(&drop, action_drop, IBV_FLOW_SPEC_ACTION_DROP, );
    drop.bytes[offsetof(struct ibv_flow_spec_action_drop, size)] -= 4;
    assert_int_equal(refusal(&drop), REASON_FLOW_SPEC);
    ADD(&tag, action_tag, IBV_FLOW_SPEC_ACTION_TAG, .tag_id = 1);
    tag.bytes[offsetof(struct ibv_flow_spec_action_tag, size)] -= 4;
    assert_int_equal(refusal(&tag), REASON_FLOW_SPEC);
    ADD(&count, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = &counters);
    count.bytes[offsetof(struct ibv_flow_spec_counter_action, size)] -= 8;
    assert_int_equal(refusal(&count), REASON_FLOW_SPEC);
    ADD(&nobody, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = NULL);
    assert_int_equal(refusal(&nobody), REASON_FLOW_SPEC);
    ADD(&flags, ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT, .mask.flags = 8);
    assert_int_equal(refusal(&flags), REASON_FLOW_SPEC);
    ADD(&inner, eth, IBV_FLOW_SPEC_ETH, .val.ether_type = 0); /* the same header twice, but within and without */
    ADD(&inner, eth, IBV_FLOW_SPEC_ETH | INNER, .val.ether_type = 0);
    assert_int_equal(refusal(&inner), REASON_NONE);
    ADD(&inner, eth, IBV_FLOW_SPEC_ETH | INNER, .val.ether_type = 0);
    assert_int_equal(refusal(&inner), REASON_FLOW_SPEC);
}

static void a_rule_has_counters_up_to_its_limit(void **state)
{
    struct specs specs = {0};
    struct ibv_counters counters;
    for (unsigned i = 0; i < FLOW_COUNTERS_MAX; i++)
        ADD(&specs, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = &counters);
    assert_int_equal(refusal(&specs), REASON_NONE);
    ADD(&specs, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = &counters);
    assert_int_equal(refusal(&specs), REASON_FLOW_SPEC);
}

TESTS(a_rule_without_headers_matches_everything,
      ethernet_fields,
      an_untagged_frame_has_no_tag_of_zero,
      ipv4_fields,
      each_flag_of_ipv4_is_its_bit,
      ipv6_fields,
      ports_belong_to_their_protocol,
      all_headers_of_a_rule_must_match,
      a_tunnel_has_an_outside_and_an_inside,
      a_gre_key_is_found_with_and_without_a_checksum,
      labels_are_matched_in_the_order_of_the_stack,
      esp_fields,
      actions_are_taken_over,
      rules_that_make_no_sense_are_refused,
      a_destination_is_known_when_all_its_bits_are,
      the_address_within_a_tunnel_is_no_destination,
      another_header_is_no_destination,
      the_headers_within_a_tunnel_are_matched_by_their_fields,
      sizes_and_masks_that_no_header_has_are_refused,
      a_rule_has_counters_up_to_its_limit)
