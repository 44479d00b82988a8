/* Numbers of queue pairs that have fewer bits than others. */
#include "ipc/node.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "ipc/testing/node_rig.h"

/* A search among the first blocks takes all of these and no others, however many are free, and has a place of its own,
 * which other searches do not move. */
static void low_numbers_are_of_the_first_blocks(void **state)
{
    enum { BLOCKS = 8, BELOW = BLOCKS * NODE_BLOCK };
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    struct node *node = rig_open(directory);
    uint32_t first, other, elsewhere;
    assert_int_equal(node_claim_numbers(node, BELOW, &first), 0);
    node_return_numbers(node, first);
    for (unsigned i = 1; i < BLOCKS - 1; i++) {
        assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &elsewhere), 0);
        node_return_numbers(node, elsewhere);
        assert_int_equal(node_claim_numbers(node, BELOW, &other), 0);
        assert_in_range(other, NODE_BLOCK, BELOW - 1);
        assert_int_not_equal(other, first);
    }
    assert_int_equal(node_claim_numbers(node, BELOW, &other), 0);
    assert_int_equal(other, first);
    assert_int_equal(node_claim_numbers(node, BELOW, &other), ENOSPC);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &other), 0);
    assert_true(other >= BELOW);
    rig_close(node);
    rig_remove(directory);
}

TESTS(low_numbers_are_of_the_first_blocks)
