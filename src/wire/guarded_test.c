/* Guarded accesses without a fault, which are plain ones; link/guard_test.c has the faults. */
#include "wire/guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/random.h"

enum { ROOM = 6000, MARGIN = 64 };

static uint8_t memory[ROOM], expected[ROOM];

static void fill(void)
{
    for (unsigned i = 0; i < ROOM; i++)
        memory[i] = expected[i] = (uint8_t)draw();
}

static void check(size_t to, size_t from, size_t length)
{
    memmove(expected + to, expected + from, length);
    assert_true(guarded_copy(memory + to, memory + from, length));
    assert_memory_equal(memory, expected, ROOM);
}

static void copies_like_memmove_at_every_short_length(void **state)
{
    fill();
    for (size_t length = 0; length < 300; length++)
        for (size_t shift = 0; shift < 17; shift++)
            check(3000 + shift, 1000 + shift / 2, length);
}

static void copies_overlapping_regions_either_way(void **state)
{
    fill();
    for (unsigned i = 0; i < 20000; i++) {
        size_t length = (size_t)(draw() % (i % 2 ? 200 : 2600)), from = (size_t)(draw() % 2000);
        size_t distance = (size_t)(draw() % (i % 3 ? 70 : 3000)), room = ROOM - length;
        size_t to = i % 5 < 2 && distance <= from ? from - distance : from + distance;
        check(to <= room ? to : room, from, length);
    }
}

static void words_of_each_size_are_loaded_and_stored(void **state)
{
    static const unsigned sizes[] = {1, 2, 4, 8};
    for (unsigned i = 0; i < 4; i++) {
        _Alignas(8) uint8_t to[24];
        uint64_t value = 0, word = 0x0807060504030201;
        memset(to, 0xee, sizeof to);
        assert_true(guarded_store(to + 8, word, sizes[i]));
        for (unsigned j = 0; j < sizeof to; j++)
            assert_int_equal(to[j], j >= 8 && j < 8 + sizes[i] ? j - 7 : 0xee);
        assert_true(guarded_load(to + 8, sizes[i], &value));
        assert_memory_equal(&value, &word, sizes[i]);
    }
}

static void atomics_give_what_was_there(void **state)
{
    uint64_t word = 5, found;
    assert_true(guarded_fetch_and_add(&word, 3, &found) && found == 5 && word == 8);
    assert_true(guarded_compare_and_swap(&word, 8, 9, &found) && found == 8 && word == 9);
    assert_true(guarded_compare_and_swap(&word, 8, 7, &found) && found == 9 && word == 9);
}

static void touching_changes_nothing(void **state)
{
    fill();
    assert_true(guarded_is_readable(memory, ROOM) && guarded_is_writable(memory, ROOM));
    assert_true(guarded_is_readable(NULL, 0) && guarded_is_writable(NULL, 0));
    assert_memory_equal(memory, expected, ROOM);
}

TESTS(copies_like_memmove_at_every_short_length,
      copies_overlapping_regions_either_way,
      words_of_each_size_are_loaded_and_stored,
      atomics_give_what_was_there,
      touching_changes_nothing)
