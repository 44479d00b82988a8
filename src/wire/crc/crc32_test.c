#include "wire/crc/crc32.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/random.h"

enum { LONGEST = 1700, OFFSETS = 64 };

static uint8_t bytes[LONGEST + OFFSETS];

/* Bit by bit, as IEEE 802.3 has it. */
static uint32_t crc_by_bits(uint32_t crc, const uint8_t *at, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < 8 * length; i++)
        crc = crc >> 1 ^ (0xedb88320 & -(1 & (crc ^ (uint32_t)(at[i / 8] >> i % 8))));
    return ~crc;
}

static void each_length_has_the_crc_of_its_bits(void **state)
{
    draw_bytes(bytes, sizeof bytes);
    for (size_t length = 0; length <= LONGEST; length++) {
        uint32_t before = (uint32_t)draw();
        const uint8_t *at = bytes + draw() % OFFSETS;
        assert_int_equal(crc32_go_on(before, at, length), crc_by_bits(before, at, length));
    }
}

static void parts_have_the_crc_of_the_whole(void **state)
{
    draw_bytes(bytes, sizeof bytes);
    uint32_t whole = crc32_go_on(0, bytes, LONGEST);
    for (size_t first = 0; first <= LONGEST; first++)
        assert_int_equal(crc32_go_on(crc32_go_on(0, bytes, first), bytes + first, LONGEST - first), whole);
}

static void nothing_changes_nothing(void **state)
{
    assert_int_equal(crc32_go_on(0, NULL, 0), 0);
    assert_int_equal(crc32_go_on(0x12345678, NULL, 0), 0x12345678);
    assert_int_equal(crc32_go_on(0, "123456789", 9), 0xcbf43926);
}

TESTS(each_length_has_the_crc_of_its_bits,
      parts_have_the_crc_of_the_whole,
      nothing_changes_nothing)
