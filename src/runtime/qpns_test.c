#include "runtime/qpns.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { FIRST = 5 * NODE_BLOCK, BLOCKS_MOST = 2, BELOW = 1 << 16 };

static unsigned claimed; /* blocks */
static struct node *const node = (struct node *)&claimed;

/* Instead of the host's table: two blocks, which do not follow each other. */
int node_claim_numbers(struct node *from, uint32_t below, uint32_t *first)
{
    assert_ptr_equal(from, node);
    assert_int_equal(below, BELOW);
    if (claimed == BLOCKS_MOST)
        return ENOSPC;
    *first = FIRST + 2 * claimed++ * NODE_BLOCK;
    return 0;
}

static struct qpn_table *begin(void)
{
    claimed = 0;
    struct qpn_table *table = qpns_create(BELOW);
    assert_non_null(table);
    return table;
}

static char objects[BLOCKS_MOST * NODE_BLOCK];

static uint32_t enter(struct qpn_table *table, void *object)
{
    uint32_t number;
    assert_int_equal(qpns_enter(node, table, object, &number), 0);
    return number;
}

static void what_was_entered_is_found_by_its_number(void **state)
{
    struct qpn_table *table = begin();
    uint32_t one = enter(table, &objects[0]), other = enter(table, &objects[1]);
    assert_int_not_equal(one, other);
    assert_ptr_equal(qpns_find(table, one), &objects[0]);
    assert_ptr_equal(qpns_find(table, other), &objects[1]);
    assert_null(qpns_find(table, 1));
    assert_null(qpns_find(table, 0xffffff));
    qpns_destroy(table);
}

static void a_reserved_number_is_no_objects_until_it_comes_back(void **state)
{
    struct qpn_table *table = begin();
    uint32_t reserved, others[NODE_BLOCK];
    assert_false(qpns_unreserve(table, FIRST));
    assert_int_equal(qpns_reserve(node, table, &reserved), 0);
    assert_null(qpns_find(table, reserved));
    for (unsigned i = 0; i < NODE_BLOCK; i++) {
        others[i] = enter(table, &objects[i]);
        assert_int_not_equal(others[i], reserved);
    }
    assert_int_equal(claimed, 2); /* the last one did not fit into the block */
    assert_false(qpns_unreserve(table, others[0]));
    assert_false(qpns_unreserve(table, 0x1000000 + reserved));
    assert_true(qpns_unreserve(table, reserved));
    assert_false(qpns_unreserve(table, reserved));
    qpns_destroy(table);
}

static void a_number_is_not_given_again_at_once(void **state)
{
    struct qpn_table *table = begin();
    uint32_t before = enter(table, &objects[0]);
    qpns_remove(table, before);
    assert_null(qpns_find(table, before));
    for (unsigned i = 0; i < NODE_BLOCK - 1; i++) {
        uint32_t number = enter(table, &objects[i]);
        assert_int_not_equal(number, before);
    }
    assert_int_equal(claimed, 1);
    qpns_destroy(table);
}

/* A packet for the number of a queue pair that was destroyed is usual, as its peer sends on for a while. */
static void a_number_that_was_never_given_is_strange_once(void **state)
{
    struct qpn_table *table = begin();
    assert_false(qpns_is_strange(table, FIRST));
    uint32_t given = enter(table, &objects[0]), other = given == FIRST ? FIRST + 1 : FIRST;
    assert_false(qpns_is_strange(table, given));
    qpns_remove(table, given);
    assert_false(qpns_is_strange(table, given));
    assert_true(qpns_is_strange(table, other));
    assert_false(qpns_is_strange(table, other));
    assert_false(qpns_is_strange(table, FIRST + NODE_BLOCK)); /* of another process */
    qpns_destroy(table);
}

static void count(void *object, void *context)
{
    ++*(unsigned *)context;
}

static void a_full_block_is_followed_by_another_until_there_is_none(void **state)
{
    struct qpn_table *table = begin();
    unsigned seen = 0;
    uint32_t number = 0;
    for (unsigned i = 0; i < BLOCKS_MOST * NODE_BLOCK; i++)
        number = enter(table, &objects[i]);
    assert_int_equal(claimed, BLOCKS_MOST);
    assert_int_equal(qpns_enter(node, table, &objects[0], &(uint32_t){0}), ENOSPC);
    qpns_each(table, count, &seen);
    assert_int_equal(seen, BLOCKS_MOST * NODE_BLOCK);
    qpns_remove(table, number);
    assert_int_equal(enter(table, &objects[0]), number);
    qpns_destroy(table);
}

static void without_a_node_no_block_is_claimed(void **state)
{
    struct qpn_table *table = begin();
    assert_int_equal(qpns_enter(NULL, table, &objects[0], &(uint32_t){0}), ENODEV);
    assert_int_equal(claimed, 0);
    qpns_destroy(table);
}

/* The table is closed although its block has free numbers. */
static void nothing_gets_a_number_of_a_closed_table(void **state)
{
    struct qpn_table *table = begin();
    uint32_t number = enter(table, &objects[0]);
    qpns_close(table);
    assert_int_equal(qpns_enter(node, table, &objects[1], &(uint32_t){0}), ENODEV);
    qpns_remove(table, number);
    assert_null(qpns_find(table, number));
    qpns_destroy(table);
}

TESTS(what_was_entered_is_found_by_its_number, a_reserved_number_is_no_objects_until_it_comes_back,
      a_number_is_not_given_again_at_once, a_number_that_was_never_given_is_strange_once,
      a_full_block_is_followed_by_another_until_there_is_none, without_a_node_no_block_is_claimed,
      nothing_gets_a_number_of_a_closed_table)
