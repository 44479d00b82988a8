/* Numbers of the GIDs of a protection domain. */
#include "verbs/object/address_numbers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { MANY = 300 };

static union ibv_gid gid_of(unsigned host)
{
    return (union ibv_gid){.raw = {0xfe, 0x80, [14] = (uint8_t)(host >> 8), (uint8_t)host}};
}

static struct address_number add(struct address_numbers *numbers, unsigned host)
{
    struct address_number result;
    union ibv_gid gid = gid_of(host);
    assert_int_equal(address_numbers_add(numbers, &gid, &result), 0);
    return result;
}

static uint16_t find(struct address_numbers *numbers, unsigned host)
{
    union ibv_gid gid = gid_of(host);
    return address_numbers_find(numbers, &gid);
}

static void each_gid_has_one_number(void **state)
{
    struct address_numbers *numbers = address_numbers_create(MANY);
    for (unsigned host = 0; host < MANY; host++)
        assert_int_equal(add(numbers, host).number, host);
    for (unsigned host = 0; host < MANY; host++)
        assert_int_equal(find(numbers, host), host);
    assert_int_equal(find(numbers, MANY), ADDRESS_NUMBER_NONE);
    address_numbers_destroy(numbers);
}

static void handles_of_a_gid_share_its_number_until_the_last_ends(void **state)
{
    struct address_numbers *numbers = address_numbers_create(4);
    struct address_number first = add(numbers, 7), second = add(numbers, 7);
    assert_int_equal(second.number, first.number);
    assert_true(second.route == first.route);
    address_numbers_drop(numbers, first.number);
    assert_int_equal(find(numbers, 7), first.number);
    address_numbers_drop(numbers, first.number);
    assert_int_equal(find(numbers, 7), ADDRESS_NUMBER_NONE);
    address_numbers_destroy(numbers);
}

static void a_number_comes_back_and_a_route_does_not(void **state)
{
    struct address_numbers *numbers = address_numbers_create(4), *other = address_numbers_create(4);
    struct address_number first = add(numbers, 1);
    add(numbers, 2);
    address_numbers_drop(numbers, first.number);
    struct address_number again = add(numbers, 1), elsewhere = add(other, 1);
    assert_int_equal(again.number, first.number);
    assert_int_equal(elsewhere.number, 0);
    assert_true(first.route && again.route != first.route && elsewhere.route != again.route);
    assert_true(elsewhere.route != first.route);
    address_numbers_destroy(numbers);
    address_numbers_destroy(other);
}

static void there_are_no_more_than_the_device_has(void **state)
{
    struct address_numbers *numbers = address_numbers_create(20);
    struct address_number result;
    union ibv_gid gid = gid_of(20);
    for (unsigned host = 0; host < 20; host++)
        add(numbers, host);
    assert_int_equal(address_numbers_add(numbers, &gid, &result), ENOMEM);
    address_numbers_drop(numbers, 11);
    assert_int_equal(add(numbers, 20).number, 11);
    address_numbers_destroy(numbers);
}

/* GIDs that differ in one byte only, in the same bucket or not: each goes without the others. */
static void numbers_end_in_any_order(void **state)
{
    struct address_numbers *numbers = address_numbers_create(MANY);
    for (unsigned host = 0; host < MANY; host++)
        add(numbers, host);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned host = i * 7 % MANY;
        address_numbers_drop(numbers, (uint16_t)host);
        assert_int_equal(find(numbers, host), ADDRESS_NUMBER_NONE);
        if (i + 1 < MANY)
            assert_int_equal(find(numbers, (i + 1) * 7 % MANY), (i + 1) * 7 % MANY);
    }
    address_numbers_destroy(numbers);
}

TESTS(each_gid_has_one_number, handles_of_a_gid_share_its_number_until_the_last_ends,
      a_number_comes_back_and_a_route_does_not, there_are_no_more_than_the_device_has, numbers_end_in_any_order)
