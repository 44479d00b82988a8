#include "wire/ether.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/ether_frames.h"
#include "wire/testing/random.h"

enum { TCP = 6, UDP = 17, GRE = 47, ESP = 50, IP_IN_IP = 4 };

static const uint8_t address[16] = {0x20, 0x01, [15] = 1};

static void has_layers(const struct ether *ether, const enum ether_kind *kinds)
{
    unsigned count = 0;
    for (; kinds[count] != ETHER_END; count++) {
        assert_in_range(count, 0, ether->count - 1);
        assert_int_equal(ether->layers[count].kind, kinds[count]);
    }
    assert_int_equal(ether->count, count);
}
#define HAS_LAYERS(ether, ...) has_layers(&(ether), (const enum ether_kind[]){__VA_ARGS__, ETHER_END})

static void a_plain_frame_has_its_layers(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 5, 6);
    frame_data(&maker, 10);
    struct ether ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV4, ETHER_UDP);
    assert_int_equal(ether.layers[2].offset, 34);
    assert_int_equal(ether.layers[2].end, 52);
    assert_false(ether.layers[0].tagged);
    assert_null(ether_find(&ether, ETHER_UDP, true));
}

static void padding_belongs_to_no_ip_packet(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 5, 6);
    frame_finish(&maker);
    frame_add(&maker, 18);
    struct ether ether;
    ether_parse(&ether, maker.bytes, maker.length);
    assert_int_equal(ether.layers[2].end, 42);
}

static void the_type_is_behind_the_last_tag_and_the_tag_is_the_outermost(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, 0x88a8);
    frame_tag(&maker, 0x6123, ETHER_TYPE_VLAN);
    frame_tag(&maker, 0x0007, ETHER_TYPE_IPV6);
    frame_ipv6(&maker, TCP, address, address);
    frame_tcp(&maker, 1, 2);
    struct ether ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV6, ETHER_TCP);
    assert_int_equal(ether.layers[0].type, ETHER_TYPE_IPV6);
    assert_int_equal(ether.layers[0].tag, 0x6123);
    assert_int_equal(ether.layers[0].size, 22);
}

static void vxlan_carries_a_frame(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 5, 4789);
    frame_word(&maker, 0x08000000);
    frame_word(&maker, 7 << 8);
    frame_ethernet(&maker, 3, 4, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, TCP, 3, 4);
    frame_tcp(&maker, 1, 2);
    struct ether ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV4, ETHER_UDP, ETHER_VXLAN, ETHER_ETHERNET, ETHER_IPV4, ETHER_TCP);
    assert_false(ether.layers[3].inner);
    assert_true(ether.layers[4].inner);
    assert_ptr_equal(ether_find(&ether, ETHER_IPV4, true), &ether.layers[5]);
}

static void gre_has_optional_fields(void **state)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        struct frame_maker maker = {0};
        unsigned words = (flags & 1) + (flags >> 1 & 1) + (flags >> 2);
        frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
        frame_ipv4(&maker, GRE, 1, 2);
        frame_word(&maker, (flags & 1) << 31 | (flags >> 1 & 1) << 29 | flags >> 2 << 28 | ETHER_TYPE_IPV4);
        for (unsigned i = 0; i < words; i++)
            frame_word(&maker, i);
        frame_ipv4(&maker, UDP, 3, 4);
        frame_udp(&maker, 1, 2);
        struct ether ether = frame_finish(&maker);
        HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV4, ETHER_GRE, ETHER_IPV4, ETHER_UDP);
        assert_true(ether.layers[3].inner);
    }
}

static void labels_end_at_the_bottom_of_the_stack(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, 0x8847);
    frame_word(&maker, 5 << 12 | 64);
    frame_word(&maker, 6 << 12 | 0x100 | 64);
    frame_ipv4(&maker, UDP, 3, 4);
    frame_udp(&maker, 1, 2);
    struct ether ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_MPLS, ETHER_MPLS, ETHER_IPV4, ETHER_UDP);
    assert_false(ether.layers[3].inner);
}

static void what_labels_over_udp_or_gre_carry_is_inside(void **state)
{
    for (int gre = 0; gre < 2; gre++) {
        struct frame_maker maker = {0};
        frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
        frame_ipv4(&maker, gre ? GRE : UDP, 1, 2);
        gre ? frame_word(&maker, 0x8847) : frame_udp(&maker, 1, 6635);
        frame_word(&maker, 6 << 12 | 0x100 | 64);
        frame_ipv4(&maker, ESP, 3, 4);
        frame_word(&maker, 1);
        frame_word(&maker, 2);
        struct ether ether = frame_finish(&maker);
        HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV4, gre ? ETHER_GRE : ETHER_UDP, ETHER_MPLS, ETHER_IPV4, ETHER_ESP);
        assert_false(ether.layers[3].inner);
        assert_true(ether.layers[4].inner);
    }
}

static void only_the_first_fragment_has_ports(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    uint8_t *ip = frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 1, 2);
    ip[6] = 0x20;
    struct ether ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV4, ETHER_UDP);
    assert_true(ether.layers[1].fragment);
    assert_false(ether_checksums_hold(&ether));
    ip[7] = 1;
    ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV4);
}

static void extension_headers_are_skipped(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV6);
    frame_ipv6(&maker, 0, address, address);
    uint8_t *hop = frame_add(&maker, 8), *destination = frame_add(&maker, 16);
    hop[0] = 60;
    destination[0] = UDP;
    destination[1] = 1;
    frame_udp(&maker, 1, 2);
    struct ether ether = frame_finish(&maker);
    HAS_LAYERS(ether, ETHER_ETHERNET, ETHER_IPV6, ETHER_UDP);
    assert_int_equal(ether.layers[1].size, 64);
}

/* A header whose checksum is known: the example of many textbooks. */
static void the_ipv4_checksum_is_the_known_one(void **state)
{
    static const uint8_t header[20] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                       0,    0,    0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    memcpy(frame_add(&maker, 20), header, 20);
    frame_udp(&maker, 1, 2);
    frame_data(&maker, 0x73 - 28);
    ether_write_checksums(maker.bytes, maker.length);
    assert_int_equal(bytes_get16(maker.bytes + 24), 0xb861);
}

static void written_checksums_hold_and_changed_bytes_break_them(void **state)
{
    for (uint32_t data = 0; data < 9; data++)
        for (int tcp = 0; tcp < 2; tcp++) {
            struct frame_maker maker = {0};
            frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
            frame_ipv4(&maker, tcp ? TCP : UDP, 0x01020304, 0xfffefdfc);
            tcp ? (void)frame_tcp(&maker, 5, 6) : frame_udp(&maker, 5, 6);
            frame_data(&maker, data);
            struct ether ether = frame_finish(&maker);
            assert_false(ether_checksums_hold(&ether));
            ether_write_checksums(maker.bytes, maker.length);
            assert_true(ether_checksums_hold(&ether));
            for (uint32_t at = 22; at < maker.length; at++) {
                maker.bytes[at] ^= 0x04;
                ether_parse(&ether, maker.bytes, maker.length);
                assert_false(ether_checksums_hold(&ether));
                maker.bytes[at] ^= 0x04;
            }
        }
}

static void a_udp_checksum_of_zero_is_none(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 5, 6);
    struct ether ether = frame_finish(&maker);
    ether_write_checksums(maker.bytes, maker.length);
    bytes_put16(maker.bytes + 40, 0);
    assert_true(ether_checksums_hold(&ether));
}

static void the_frame_check_sequence_is_the_known_one(void **state)
{
    uint8_t check[ETHER_FCS];
    ether_frame_check((const uint8_t *)"123456789", 9, check);
    assert_memory_equal(check, ((const uint8_t[]){0x26, 0x39, 0xf4, 0xcb}), 4);
}

static void every_truncation_is_parsed_without_reading_further(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_VLAN);
    frame_tag(&maker, 1, ETHER_TYPE_IPV6);
    frame_ipv6(&maker, IP_IN_IP, address, address);
    frame_ipv4(&maker, GRE, 1, 2);
    frame_word(&maker, 0x20006558);
    frame_word(&maker, 9);
    frame_ethernet(&maker, 1, 2, 0x8847);
    frame_word(&maker, 0x100);
    frame_ipv4(&maker, TCP, 1, 2);
    frame_tcp(&maker, 1, 2);
    frame_finish(&maker);
    for (uint32_t length = 0; length <= maker.length; length++) {
        struct ether ether;
        uint8_t *copy = malloc(length + !length); /* so that a sanitizer sees reads after its end */
        memcpy(copy, maker.bytes, length);
        ether_parse(&ether, copy, length);
        ether_checksums_hold(&ether);
        ether_write_checksums(copy, length);
        if (ether.count)
            assert_in_range(ether.layers[ether.count - 1].offset + ether.layers[ether.count - 1].size, 0, length);
        free(copy);
    }
}

static void random_changes_never_lead_outside(void **state)
{
    struct frame_maker first = {0};
    frame_ethernet(&first, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&first, UDP, 1, 2);
    frame_udp(&first, 5, 4789);
    frame_word(&first, 0x08000000);
    frame_word(&first, 7 << 8);
    frame_ethernet(&first, 3, 4, ETHER_TYPE_IPV6);
    frame_ipv6(&first, 0, address, address);
    frame_data(&first, 60);
    frame_finish(&first);
    for (int i = 0; i < 20000; i++) {
        struct ether ether;
        uint8_t *copy = malloc(first.length);
        memcpy(copy, first.bytes, first.length);
        for (int change = 0; change < 4; change++)
            copy[draw() % first.length] = (uint8_t)(draw() >> 24);
        ether_parse(&ether, copy, first.length);
        for (unsigned at = 0; at < ether.count; at++)
            assert_in_range(ether.layers[at].offset + ether.layers[at].size, 1, ether.layers[at].end);
        ether_checksums_hold(&ether);
        ether_write_checksums(copy, first.length);
        free(copy);
    }
}

TESTS(a_plain_frame_has_its_layers,
      padding_belongs_to_no_ip_packet,
      the_type_is_behind_the_last_tag_and_the_tag_is_the_outermost,
      vxlan_carries_a_frame,
      gre_has_optional_fields,
      labels_end_at_the_bottom_of_the_stack,
      what_labels_over_udp_or_gre_carry_is_inside,
      only_the_first_fragment_has_ports,
      extension_headers_are_skipped,
      the_ipv4_checksum_is_the_known_one,
      written_checksums_hold_and_changed_bytes_break_them,
      a_udp_checksum_of_zero_is_none,
      the_frame_check_sequence_is_the_known_one,
      every_truncation_is_parsed_without_reading_further,
      random_changes_never_lead_outside)
