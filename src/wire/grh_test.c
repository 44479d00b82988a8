#include "wire/grh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"

static const uint8_t here[16] = {[10] = 0xff, 0xff, 192, 168, 0, 1}, there[16] = {[10] = 0xff, 0xff, 192, 168, 0, 199};
static const uint8_t here6[16] = {0xfe, 0x80, [15] = 1}, there6[16] = {0xfe, 0x80, [15] = 2};

/* The example that the literature computes by hand: a UDP datagram of 115 bytes whose checksum is 0xb861. */
static void an_ipv4_header_has_the_lower_half_and_its_checksum(void **state)
{
    static const uint8_t expected[20] = {0x45, 0,    0,   0x73, 0, 0, 0x40, 0,   0x40, 0x11,
                                         0xb8, 0x61, 192, 168,  0, 1, 192,  168, 0,    199};
    static const uint8_t unused[20];
    struct grh_route route = {.source = here, .destination = there, .hop_limit = 64, .fragment = 0x4000};
    uint8_t grh[GRH_LENGTH], ip[GRH_LENGTH];
    memset(grh, 0xee, sizeof grh);
    grh_write(grh, &route, 0x73 - 20);
    assert_memory_equal(grh, unused, 20);
    assert_memory_equal(grh + 20, expected, 20);
    assert_int_equal(grh_write_ip(ip, &route, 0x73 - 20), 20);
    assert_memory_equal(ip, expected, 20);
}

static void an_ipv6_header_is_the_grh(void **state)
{
    static const uint8_t expected[8] = {0x61, 0x2a, 0xbc, 0xde, 0x01, 0x02, 17, 3};
    struct grh_route route = {
        .source = here6, .destination = there6, .traffic_class = 0x12, .flow_label = 0xfffabcde, .hop_limit = 3};
    uint8_t grh[GRH_LENGTH];
    assert_int_equal(grh_write_ip(grh, &route, 0x102), 40);
    assert_memory_equal(grh, expected, 8);
    assert_memory_equal(grh + 8, here6, 16);
    assert_memory_equal(grh + 24, there6, 16);
}

static void a_length_that_comes_later_gives_the_same_header(void **state)
{
    uint8_t later[GRH_LENGTH], once[GRH_LENGTH];
    for (uint32_t length = 8; length < 65000; length += 7)
        for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
            struct grh_route route = {.source = ipv6 ? here6 : here,
                                      .destination = ipv6 ? there6 : there,
                                      .traffic_class = (uint8_t)length,
                                      .identification = (uint16_t)(length * 31),
                                      .hop_limit = 7};
            grh_write(once, &route, length);
            grh_write(later, &route, 0);
            grh_set_length(later, length);
            assert_memory_equal(later, once, sizeof once);
        }
}

static void addresses_are_read_as_they_were_written(void **state)
{
    uint8_t grh[GRH_LENGTH], source[16], destination[16];
    for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
        struct grh_route route = {.source = ipv6 ? here6 : here, .destination = ipv6 ? there6 : there};
        grh_write(grh, &route, 8);
        grh_read(grh, source, destination);
        assert_memory_equal(source, route.source, 16);
        assert_memory_equal(destination, route.destination, 16);
    }
    assert_true(grh_is_ipv4(here));
    assert_false(grh_is_ipv4(here6));
}

TESTS(an_ipv4_header_has_the_lower_half_and_its_checksum,
      an_ipv6_header_is_the_grh,
      a_length_that_comes_later_gives_the_same_header,
      addresses_are_read_as_they_were_written)
