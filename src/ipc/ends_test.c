/* The possible contents of the ends of connections in the host's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "base/testing/group.h"
#include "ipc/ends.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { ONE = 0x111, OTHER = 0x222 };

static struct end one = {.number = ONE, .peer = OTHER, .sq_psn = 5, .mtu = 3, .family = 6};
static struct end other = {.number = OTHER, .peer = ONE, .sq_psn = 6, .mtu = 3, .family = 6};

static char directory[NODE_DIRECTORY_MAX + 1];

static struct node *open_node(void)
{
    rig_directory(directory);
    return rig_open(directory);
}

static void close_node(struct node *node)
{
    rig_close(node);
    rig_remove(directory);
}

static void the_later_of_two_meets_the_earlier(void **state)
{
    struct node *node = open_node();
    struct end met;
    ends_enter(node, &one);
    assert_false(ends_meet(node, &one, 0, &met));
    ends_enter(node, &other);
    assert_true(ends_meet(node, &other, 0, &met));
    assert_int_equal(met.number, ONE);
    assert_int_equal(met.sq_psn, 5);
    assert_true(ends_meet(node, &other, met.reached, &met));
    assert_false(ends_meet(node, &other, met.reached + 1, &met)); /* an earlier connection of the same two */
    close_node(node);
}

static void a_third_one_and_a_queue_pair_itself_are_not_met(void **state)
{
    struct node *node = open_node();
    const struct end third = {.number = 0x333, .peer = ONE, .mtu = 3},
                     self = {.number = 0x444, .peer = 0x444, .mtu = 3};
    struct end met;
    ends_enter(node, &one);
    ends_enter(node, &third);
    assert_false(ends_meet(node, &third, 0, &met));
    ends_enter(node, &self);
    assert_false(ends_meet(node, &self, 0, &met));
    close_node(node);
}

static void an_end_that_was_removed_is_not_found(void **state)
{
    struct node *node = open_node();
    struct end found;
    ends_enter(node, &one);
    ends_remove(node, OTHER);
    assert_true(ends_find(node, ONE, &found));
    ends_remove(node, ONE);
    assert_false(ends_find(node, ONE, &found));
    close_node(node);
}

static void a_later_end_takes_the_place_of_an_earlier_one(void **state)
{
    struct node *node = open_node();
    const struct end later = {.number = ONE + TABLE_ENDS, .peer = OTHER, .mtu = 1};
    struct end found;
    ends_enter(node, &one);
    ends_enter(node, &later);
    assert_false(ends_find(node, ONE, &found));
    assert_true(ends_find(node, later.number, &found));
    ends_remove(node, ONE); /* as when the earlier one is destroyed */
    assert_true(ends_find(node, later.number, &found));
    close_node(node);
}

/* A writer that ended in the middle, two at once, and any other process of the directory. */
static void an_end_with_one_other_word_is_not_found(void **state)
{
    struct node *node = open_node();
    struct end found;
    for (unsigned word = 0; word < TABLE_END_WORDS; word++)
        for (unsigned bit = 0; bit < 64; bit++) {
            ends_enter(node, &one);
            assert_true(ends_find(node, ONE, &found));
            atomic_fetch_xor(&node->table->file->ends[ONE % TABLE_ENDS].words[word], 1ull << bit);
            assert_false(ends_find(node, ONE, &found));
        }
    close_node(node);
}

static void zeros_are_no_end(void **state)
{
    struct node *node = open_node();
    struct end found;
    for (uint32_t number = 0; number < TABLE_ENDS; number++)
        assert_false(ends_find(node, number, &found));
    close_node(node);
}

static bool is_found(struct end end)
{
    struct node *node = open_node();
    struct end found;
    ends_enter(node, &end);
    bool was = ends_find(node, end.number, &found);
    close_node(node);
    return was;
}

static void values_that_no_queue_pair_has_are_not_found(void **state)
{
    assert_true(is_found((struct end){.number = ONE, .mtu = 5, .family = 4}));
    assert_true(is_found((struct end){.number = ONE, .mtu = 1}));
    assert_false(is_found((struct end){.number = ONE, .mtu = 0}));
    assert_false(is_found((struct end){.number = ONE, .mtu = 6}));
    assert_false(is_found((struct end){.number = ONE, .mtu = 255}));
    assert_false(is_found((struct end){.number = ONE, .mtu = 5, .family = 5}));
    assert_false(is_found((struct end){.number = 1 << 24, .mtu = 5}));
}

static int enter_one(const char *place, void *context)
{
    struct node *node = rig_open(place);
    ends_enter(node, &one);
    rig_close(node);
    return 0;
}

static void another_process_finds_it(void **state)
{
    struct end met;
    struct node *node = open_node();
    assert_int_equal(rig_wait(rig_start(enter_one, directory, NULL), 60), 0);
    ends_enter(node, &other);
    assert_true(ends_meet(node, &other, 0, &met));
    assert_int_equal(met.sq_psn, 5);
    close_node(node);
}

TESTS(the_later_of_two_meets_the_earlier,
      a_third_one_and_a_queue_pair_itself_are_not_met,
      an_end_that_was_removed_is_not_found,
      a_later_end_takes_the_place_of_an_earlier_one,
      an_end_with_one_other_word_is_not_found,
      zeros_are_no_end,
      values_that_no_queue_pair_has_are_not_found,
      another_process_finds_it)
