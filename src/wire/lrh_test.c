#include "wire/lrh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

/* The packet that literature on the CRCs of InfiniBand computes: without a GRH, virtual lane 7. */
static const uint8_t example[58] = {0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87,
                                    0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c,
                                    0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
                                    0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69,
                                    0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a, 0x45, 0xfa};

static void the_crcs_of_a_known_packet_come_out(void **state)
{
    assert_int_equal(lrh_icrc(example, 52), 0x5ab72596);
    assert_int_equal(lrh_vcrc(example, 56), 0xfa45);
}

static void the_length_is_that_of_a_queue_pairs_packet(void **state)
{
    uint8_t bytes[8];
    assert_int_equal(lrh_packet_length(example), 56);
    lrh_write(bytes, &(struct lrh){.global = true}, 40 + 12); /* no room for the ICRC */
    assert_int_equal(lrh_packet_length(bytes), 0);
    lrh_write(bytes, &(struct lrh){.global = false}, 40 + 12);
    assert_int_equal(lrh_packet_length(bytes), 60);
    bytes[1] = 0; /* a raw packet */
    assert_int_equal(lrh_packet_length(bytes), 0);
}

static void the_icrc_leaves_out_what_may_change_on_the_way(void **state)
{
    uint8_t packet[8 + 40 + 12 + 4] = {0, 3};
    uint32_t before = lrh_icrc(packet, sizeof packet);
    packet[0] = 0xf0;                                             /* virtual lane */
    packet[8] = 0x0f, packet[9] = packet[10] = packet[11] = 0xff; /* traffic class, flow label */
    packet[8 + 7] = 1;                                            /* hop limit */
    packet[8 + 40 + 4] = 0xc0;                                    /* congestion */
    assert_int_equal(lrh_icrc(packet, sizeof packet), before);
    packet[3] = 1; /* a LID */
    assert_int_not_equal(lrh_icrc(packet, sizeof packet), before);
}

static void the_header_says_what_follows_and_how_much(void **state)
{
    static const uint8_t expected[8] = {0, 0x52, 0x12, 0x34, 0, 0x0e, 0xab, 0xcd};
    struct lrh lrh = {.destination = 0x1234, .source = 0xabcd, .sl = 5};
    uint8_t bytes[8];
    lrh_write(bytes, &lrh, 14 * 4 - 8);
    assert_memory_equal(bytes, expected, 8);
    lrh.global = true;
    lrh_write(bytes, &lrh, 1 << 20);
    assert_int_equal(bytes[1], 0x53);
    assert_int_equal(bytes[4] << 8 | bytes[5], LRH_LENGTH_MAX);
    struct lrh again = lrh_read(bytes);
    assert_int_equal(again.destination, 0x1234);
    assert_int_equal(again.source, 0xabcd);
    assert_int_equal(again.sl, 5);
    assert_true(again.global);
}

TESTS(the_crcs_of_a_known_packet_come_out,
      the_length_is_that_of_a_queue_pairs_packet,
      the_icrc_leaves_out_what_may_change_on_the_way,
      the_header_says_what_follows_and_how_much)
