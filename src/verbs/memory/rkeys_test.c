/* The table of keys. */
#include "verbs/memory/rkeys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { INDEX = ~0xff, MANY = 300 };

static void a_region_is_found_by_its_key_and_by_no_other(void **state)
{
    struct rkey_table *table = rkeys_create();
    struct region one = {.length = 1}, other = {.length = 2};
    assert_int_equal(rkeys_enter(table, &one), 0);
    assert_int_equal(rkeys_enter(table, &other), 0);
    assert_int_not_equal(one.key & INDEX, other.key & INDEX);
    assert_ptr_equal(rkeys_find(table, one.key), &one);
    assert_ptr_equal(rkeys_find(table, other.key), &other);
    assert_null(rkeys_find(table, 0));
    rkeys_destroy(table);
}

static void the_low_eight_bits_are_looked_at_by_find_and_not_by_at(void **state)
{
    struct rkey_table *table = rkeys_create();
    struct region region = {.length = 1};
    rkeys_enter(table, &region);
    for (uint32_t low = 1; low < 256; low++) {
        assert_null(rkeys_find(table, region.key ^ low));
        assert_ptr_equal(rkeys_at(table, region.key ^ low), &region);
    }
    rkeys_destroy(table);
}

static void a_hidden_region_is_not_found_and_keeps_its_key(void **state)
{
    struct rkey_table *table = rkeys_create();
    struct region region = {.length = 1};
    rkeys_enter(table, &region);
    uint32_t key = region.key;
    rkeys_hide(table, &region);
    assert_null(rkeys_find(table, key));
    assert_null(rkeys_at(table, key));
    rkeys_show(table, &region);
    assert_int_equal(region.key, key);
    assert_ptr_equal(rkeys_find(table, key), &region);
    rkeys_destroy(table);
}

/* IBA 10.6.3.2: a key that was given up must not be the next region's at once. */
static void a_stale_key_misses_also_when_its_index_is_used_again(void **state)
{
    struct rkey_table *table = rkeys_create();
    struct region region = {.length = 1}, later[MANY];
    rkeys_enter(table, &region);
    uint32_t stale = region.key;
    rkeys_remove(table, &region);
    assert_null(rkeys_find(table, stale));
    unsigned again = 0;
    for (unsigned i = 0; i < MANY; i++) {
        later[i] = (struct region){.length = i};
        assert_int_equal(rkeys_enter(table, &later[i]), 0);
        again += (later[i].key & INDEX) == (stale & INDEX);
        assert_int_not_equal(later[i].key, stale);
        assert_null(rkeys_find(table, stale));
    }
    assert_int_equal(again, 1);
    rkeys_destroy(table);
}

TESTS(a_region_is_found_by_its_key_and_by_no_other,
      the_low_eight_bits_are_looked_at_by_find_and_not_by_at,
      a_hidden_region_is_not_found_and_keeps_its_key,
      a_stale_key_misses_also_when_its_index_is_used_again)
