#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "transport/tm/tag_list.h"

#define EXACT UINT64_MAX
#define ANY UINT64_MAX /* sequence: all entries are enabled */

struct fixture {
    struct tag_list list;
    void *memory;
};

static struct fixture *make(uint32_t capacity)
{
    struct fixture *fixture = malloc(sizeof(*fixture));
    size_t size = (tag_list_size(capacity) + 63) & ~(size_t)63;
    fixture->memory = aligned_alloc(64, size);
    for (size_t i = 0; i < size; i++)
        ((char *)fixture->memory)[i] = 0;
    tag_list_initialize(&fixture->list, fixture->memory, capacity);
    return fixture;
}

static void unmake(struct fixture *fixture)
{
    free(fixture->memory);
    free(fixture);
}

static uint32_t insert(struct tag_list *list, uint64_t tag, uint64_t mask)
{
    uint32_t entry = tag_list_allocate(list);
    assert_int_not_equal(entry, 0);
    tag_list_insert(list, entry, tag, mask);
    return entry;
}

static uint32_t take(struct tag_list *list, uint64_t tag)
{
    uint32_t entry = tag_list_find(list, tag, ANY);
    if (entry) {
        tag_list_remove(list, entry);
        tag_list_free(list, entry);
    }
    return entry;
}

/* 13 entries in each group of places, and a power of two of groups. */
static void a_table_is_as_large_as_its_entries_need(void **state)
{
    static const struct {
        uint32_t capacity, groups;
    } rows[] = {{0, 1}, {1, 1}, {13, 1}, {14, 2}, {26, 2}, {27, 4}, {52, 4}, {53, 8}, {13 << 20, 1 << 20}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(tag_table_size(rows[i].capacity), rows[i].groups * sizeof(struct tag_group));
}

static void the_oldest_of_equal_tags_is_found(void **state)
{
    struct fixture *fixture = make(8);
    uint32_t entries[4];
    for (int i = 0; i < 4; i++)
        entries[i] = insert(&fixture->list, 7, EXACT);
    for (int i = 0; i < 4; i++)
        assert_int_equal(take(&fixture->list, 7), entries[i]);
    assert_int_equal(take(&fixture->list, 7), 0);
    unmake(fixture);
}

static void the_order_of_posting_holds_across_masks(void **state)
{
    struct fixture *fixture = make(8);
    uint32_t all = insert(&fixture->list, 0, 0), exact = insert(&fixture->list, 0x107, EXACT),
             low = insert(&fixture->list, 7, 0xff), late = insert(&fixture->list, 0, 0);
    assert_int_equal(take(&fixture->list, 0x107), all);
    assert_int_equal(take(&fixture->list, 0x207), low);
    assert_int_equal(take(&fixture->list, 0x107), exact);
    assert_int_equal(take(&fixture->list, 0x107), late);
    unmake(fixture);
}

static void a_tag_with_bits_outside_its_mask_is_never_found(void **state)
{
    struct fixture *fixture = make(8);
    insert(&fixture->list, 0x107, 0xff);
    assert_int_equal(tag_list_find(&fixture->list, 0x107, ANY), 0);
    assert_int_equal(tag_list_find(&fixture->list, 7, ANY), 0);
    unmake(fixture);
}

static void entries_leave_a_ring_from_every_place(void **state)
{
    for (int leaving = 0; leaving < 3; leaving++) {
        struct fixture *fixture = make(8);
        uint32_t entries[3];
        for (int i = 0; i < 3; i++)
            entries[i] = insert(&fixture->list, 5, 0xff);
        tag_list_remove(&fixture->list, entries[leaving]);
        for (int i = 0; i < 3; i++)
            if (i != leaving)
                assert_int_equal(take(&fixture->list, 5), entries[i]);
        assert_int_equal(take(&fixture->list, 5), 0);
        assert_int_equal(fixture->list.count, 0);
        unmake(fixture);
    }
}

static void entries_above_the_limit_are_passed_over(void **state)
{
    struct fixture *fixture = make(8);
    uint32_t wild = insert(&fixture->list, 0, 0);
    uint64_t border = fixture->list.next_sequence;
    uint32_t exact = insert(&fixture->list, 9, EXACT);
    assert_int_equal(tag_list_find(&fixture->list, 9, border), wild);
    tag_list_remove(&fixture->list, wild);
    assert_int_equal(tag_list_find(&fixture->list, 9, border), 0);
    assert_int_equal(tag_list_find(&fixture->list, 9, border + 1), exact);
    unmake(fixture);
}

static void a_full_list_refuses_and_a_freed_entry_is_used_again(void **state)
{
    struct fixture *fixture = make(3);
    uint32_t first = insert(&fixture->list, 1, EXACT);
    insert(&fixture->list, 2, EXACT);
    insert(&fixture->list, 3, EXACT);
    assert_int_equal(tag_list_allocate(&fixture->list), 0);
    assert_int_equal(take(&fixture->list, 1), first);
    assert_int_equal(insert(&fixture->list, 4, EXACT), first);
    unmake(fixture);
}

static void a_stale_handle_misses(void **state)
{
    struct fixture *fixture = make(1);
    struct tag_list *list = &fixture->list;
    uint32_t entry = insert(list, 1, EXACT), stale = tag_list_handle(list, entry);
    assert_int_equal(tag_list_by_handle(list, stale), entry);
    take(list, 1);
    assert_int_equal(tag_list_by_handle(list, stale), 0);
    insert(list, 1, EXACT);
    assert_int_equal(tag_list_by_handle(list, stale), 0);
    assert_int_equal(tag_list_by_handle(list, 0), 0);
    assert_int_equal(tag_list_by_handle(list, UINT32_MAX), 0);
    assert_int_equal(tag_list_by_handle(list, tag_list_handle(list, entry)), entry);
    unmake(fixture);
}

/* The longer the list, the fewer bits are left to distinguish the lives of an entry; so it rests between two of
 * them. */
static void a_stale_handle_misses_for_half_a_million_entries_to_come(void **state)
{
    struct fixture *fixture = make(262144);
    struct tag_list *list = &fixture->list;
    uint32_t stale = tag_list_handle(list, insert(list, 1, EXACT));
    take(list, 1);
    for (int i = 0; i < 500000; i++) {
        insert(list, 1, EXACT);
        assert_int_equal(tag_list_by_handle(list, stale), 0);
        take(list, 1);
    }
    unmake(fixture);
}

static void as_many_masks_as_entries_are_kept_apart(void **state)
{
    enum { COUNT = 1000 };
    struct fixture *fixture = make(COUNT);
    uint32_t entries[COUNT];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            entries[i] = insert(&fixture->list, 0, (uint64_t)i << 8);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(take(&fixture->list, 0x55), entries[i]);
        assert_int_equal(fixture->list.first_mask, 0);
    }
    unmake(fixture);
}

/* A bad hash would fill some groups and leave others empty: hardly any entry may be outside its own group. */
static void a_hundred_thousand_tags_lie_where_they_are_looked_for(void **state)
{
    enum { COUNT = 100000 };
    struct fixture *fixture = make(COUNT);
    struct tag_list *list = &fixture->list;
    for (uint64_t i = 0; i < COUNT; i++)
        insert(list, i << 32 | 3, EXACT);
    uint32_t passed = 0;
    for (uint32_t group = 0; group <= list->table.group_mask; group++)
        passed += list->table.groups[group].passed;
    assert_in_range(passed, 0, COUNT / 4);
    for (uint64_t i = COUNT; i-- > 0;)
        assert_int_equal(list->entries[take(list, i << 32 | 3)].tag, i << 32 | 3);
    assert_int_equal(list->allocated, 0);
    unmake(fixture);
}

/* The oldest entry that matches, by looking at all of them. */
static uint32_t search(const struct tag_list *list, uint64_t tag)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i <= list->fresh; i++)
        if (tag_list_holds(list, i) && (tag & list->masks[list->entries[i].mask].mask) == list->entries[i].tag &&
            (!oldest || list->entries[i].sequence < list->entries[oldest].sequence))
            oldest = i;
    return oldest;
}

/* The table is full, so that many entries are in later groups than their own, and groups between lose entries. */
static void a_full_table_finds_what_a_search_of_all_entries_finds(void **state)
{
    enum { COUNT = 16 * 13, STEPS = 100000 };
    struct fixture *fixture = make(COUNT);
    struct tag_list *list = &fixture->list;
    uint64_t chance = 88172645463325252u, found = 0;
    for (int step = 0; step < STEPS; step++) {
        chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
        uint64_t tag = chance >> 8 & 0xff, mask = chance & 7 ? EXACT : 0xf0;
        if (list->count < COUNT) {
            insert(list, tag & mask, mask);
            continue;
        }
        uint32_t expected = search(list, tag);
        found += expected != 0;
        assert_int_equal(take(list, tag), expected);
        uint32_t other = 1 + (uint32_t)(chance >> 32) % COUNT;
        if (!tag_list_holds(list, other))
            continue;
        tag_list_remove(list, other);
        tag_list_free(list, other);
    }
    assert_in_range(found, STEPS / 10, STEPS);
    for (uint32_t i = 1; i <= COUNT; i++)
        if (tag_list_holds(list, i))
            tag_list_remove(list, i);
    static const struct tag_group none;
    for (uint32_t group = 0; group <= list->table.group_mask; group++)
        assert_memory_equal(&list->table.groups[group], &none, sizeof(none));
    unmake(fixture);
}

TESTS(a_table_is_as_large_as_its_entries_need,
      the_oldest_of_equal_tags_is_found,
      the_order_of_posting_holds_across_masks,
      a_tag_with_bits_outside_its_mask_is_never_found,
      entries_leave_a_ring_from_every_place,
      entries_above_the_limit_are_passed_over,
      a_full_list_refuses_and_a_freed_entry_is_used_again,
      a_stale_handle_misses,
      a_stale_handle_misses_for_half_a_million_entries_to_come,
      as_many_masks_as_entries_are_kept_apart,
      a_hundred_thousand_tags_lie_where_they_are_looked_for,
      a_full_table_finds_what_a_search_of_all_entries_finds)
