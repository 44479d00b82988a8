/* Numbers, shares, lists and lines "key = value". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "base/text/text.h"

static const struct {
    const char *text;
    uint64_t least, most;
    int decimal, hex; /* -1: no number */
} numbers[] = {
    {"0", 0, 9, 0, 0},
    {"9", 0, 9, 9, 9},
    {"10", 0, 9, -1, -1},
    {"0", 1, 9, -1, -1},
    {"007", 0, 9, 7, 7},
    {"0x10", 0, 99, -1, 16},
    {"0X1f", 0, 99, -1, 31},
    {"0x", 0, 99, -1, -1},
    {"", 0, 99, -1, -1},
    {" 1", 0, 99, -1, -1},
    {"1 ", 0, 99, -1, -1},
    {"+1", 0, 99, -1, -1},
    {"-1", 0, 99, -1, -1},
    {"1.5", 0, 99, -1, -1},
    {"1a", 0, 99, -1, -1},
    {"0xg", 0, 99, -1, -1},
    {"18446744073709551616", 0, UINT64_MAX, -1, -1},
    {"0x10000000000000000", 0, UINT64_MAX, -1, -1},
};

static void a_number_has_its_range_and_nothing_else_around_it(void **state)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t decimal = 77, hex = 77;
        assert_int_equal(text_number(numbers[i].text, numbers[i].least, numbers[i].most, &decimal),
                         numbers[i].decimal >= 0);
        assert_int_equal(text_number_or_hex(numbers[i].text, numbers[i].least, numbers[i].most, &hex),
                         numbers[i].hex >= 0);
        assert_int_equal(decimal, numbers[i].decimal < 0 ? 77 : numbers[i].decimal);
        assert_int_equal(hex, numbers[i].hex < 0 ? 77 : numbers[i].hex);
    }
    uint64_t most;
    assert_true(text_number("18446744073709551615", 0, UINT64_MAX, &most) && most == UINT64_MAX);
    assert_true(text_number_or_hex("0xffffffffffffffff", 0, UINT64_MAX, &most) && most == UINT64_MAX);
}

static void a_range_has_two_ends_or_one(void **state)
{
    uint64_t first, last;
    const char *rest;
    assert_true(text_range("1-20,4", &first, &last, &rest));
    assert_true(first == 1 && last == 20 && !strcmp(rest, ",4"));
    assert_true(text_range("7", &first, &last, &rest));
    assert_true(first == 7 && last == 7 && !*rest);
    assert_false(text_range("8-7", &first, &last, &rest));
    assert_false(text_range("8-", &first, &last, &rest));
    assert_false(text_range("-7", &first, &last, &rest));
}

static void a_quantity_has_its_unit(void **state)
{
    static const struct text_unit times[] = {{"us", 1e3}, {"ms", 1e6}, {NULL, 0}}, plain[] = {{"", 1}, {NULL, 0}};
    double value;
    assert_true(text_quantity("1.5ms", times, 1e9, &value) && value == 1.5e6);
    assert_true(text_quantity(".5us", times, 1e9, &value) && value == 500);
    assert_false(text_quantity("1.5", times, 1e9, &value));
    assert_false(text_quantity("1001ms", times, 1e9, &value));
    assert_true(text_quantity("0.25", plain, 1, &value) && value == 0.25);
    const char *wrong[] = {"", ".", "-1", "1e3", "inf", "nan", "1..5", "1,5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(text_quantity(wrong[i], plain, 1e9, &value));
}

static void a_list_has_parts(void **state)
{
    const char *list = "a,,bc,", *empty = "";
    const char *const parts[] = {"a", "", "bc"};
    struct text_part part;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_true(text_next(&list, ",", &part) && text_part_is(part, parts[i]));
    assert_false(text_next(&list, ",", &part));
    assert_false(text_next(&empty, ",", &part));
    assert_false(text_part_is((struct text_part){"abc", 2}, "abc"));
}

static void a_line_has_a_key_and_a_value(void **state)
{
    char line[] = " key\t=  a value \r\n", bare[] = " key ", empty[] = "=", *key;
    assert_string_equal(text_key_value(line, &key), "a value");
    assert_string_equal(key, "key");
    assert_null(text_key_value(bare, &key));
    assert_string_equal(key, "key");
    assert_string_equal(text_key_value(empty, &key), "");
    assert_string_equal(key, "");
}

TESTS(a_number_has_its_range_and_nothing_else_around_it,
      a_range_has_two_ends_or_one,
      a_quantity_has_its_unit,
      a_list_has_parts,
      a_line_has_a_key_and_a_value)
