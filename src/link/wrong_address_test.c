/* Addresses that programs cut, or send in the wrong order of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "link/wrong_address.h"

enum { SIZE = 4096 };
static const uint64_t base = 0x7f1280402000;

static void the_upper_half_is_missing(void **state)
{
    assert_int_equal(wrong_address_find((uint32_t)base, base, SIZE), WRONG_ADDRESS_CUT);
    assert_int_equal(wrong_address_find((uint32_t)base + SIZE - 1, base, SIZE), WRONG_ADDRESS_CUT);
    assert_int_equal(wrong_address_find((uint64_t)(int32_t)(uint32_t)base, base, SIZE), WRONG_ADDRESS_CUT);
    assert_int_equal(wrong_address_find(0x10, 0x7f12fffff000, 2 * SIZE), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find(0x2000, 0x7f1200000000, 4 * SIZE), WRONG_ADDRESS_UNKNOWN); /* an offset */
}

static void the_bytes_are_in_the_other_order(void **state)
{
    assert_int_equal(wrong_address_find(__builtin_bswap64(base + 64), base, SIZE), WRONG_ADDRESS_SWAPPED);
    assert_int_equal(wrong_address_find(__builtin_bswap64(base + SIZE), base, SIZE), WRONG_ADDRESS_UNKNOWN);
}

static void of_others_nothing_is_said(void **state)
{
    assert_int_equal(wrong_address_find(base, base, SIZE), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find(base + SIZE, base, SIZE), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find(base - 1, base, SIZE), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find((uint32_t)base - 1, base, SIZE), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find((uint32_t)base, base, UINT64_C(1) << 29), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find(0x5000, 0x4000, 0x1000), WRONG_ADDRESS_UNKNOWN);
    assert_int_equal(wrong_address_find(0, base, 0), WRONG_ADDRESS_UNKNOWN);
}

TESTS(the_upper_half_is_missing, the_bytes_are_in_the_other_order, of_others_nothing_is_said)
