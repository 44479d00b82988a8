/* The library's maps are never where a region is, whose program may have unmapped it. The kernel alone would give the
 * hole: it takes the highest that fits. */
#include "base/mapping.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { PAGE = 4096, HOLE = 1 << 20, AROUND = 64 << 20, MAPS = 8, REGIONS = 64 };
static const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/* Makes a hole in mapped memory, so that there is no other room beside it. */
static char *make_hole(size_t length)
{
    char *around = mmap(NULL, AROUND, PROT_NONE, anonymous, -1, 0);
    assert_true(around != MAP_FAILED);
    assert_int_equal(munmap(around + AROUND / 2, length), 0);
    return around + AROUND / 2;
}

static void fill_hole(char *hole)
{
    assert_int_equal(munmap(hole - AROUND / 2, AROUND), 0);
}

static bool is_in(const char *at, size_t length, const char *hole, size_t hole_length)
{
    return at < hole + hole_length && hole < at + length;
}

static char *make(size_t length)
{
    char *at = mapping_make(length, PROT_READ | PROT_WRITE, anonymous, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

/* Many, as smaller holes elsewhere are filled first. */
static void expect_elsewhere(const char *hole, size_t hole_length, size_t length, char *(*take)(size_t))
{
    char *taken[MAPS];
    for (unsigned i = 0; i < MAPS; i++) {
        taken[i] = take(length);
        assert_non_null(taken[i]);
        taken[i][0] = taken[i][length - 1] = 1;
        assert_false(is_in(taken[i], length, hole, hole_length));
    }
    for (unsigned i = 0; i < MAPS; i++)
        munmap(taken[i], length);
}

static void no_map_is_made_in_the_hole_of_a_region(void **state)
{
    static struct mapping_avoided region; /* stays if the test fails */
    char *hole = make_hole(HOLE);
    mapping_avoid(&region, hole, HOLE);
    expect_elsewhere(hole, HOLE, HOLE / 2, make);
    mapping_allow(&region);
    fill_hole(hole);
}

/* The map would begin before the region and end after it. */
static void a_map_does_not_reach_into_a_region(void **state)
{
    static struct mapping_avoided region;
    char *hole = make_hole(HOLE);
    mapping_avoid(&region, hole + HOLE / 2, 1);
    char *made = make(HOLE);
    assert_false(is_in(made, HOLE, hole + HOLE / 2, 1));
    munmap(made, HOLE);
    mapping_allow(&region);
    fill_hole(hole);
}

static void many_regions_side_by_side_are_avoided(void **state)
{
    static struct mapping_avoided regions[REGIONS];
    char *hole = make_hole((size_t)REGIONS * PAGE);
    for (unsigned i = 0; i < REGIONS; i++)
        mapping_avoid(&regions[i], hole + (size_t)i * PAGE, PAGE);
    expect_elsewhere(hole, (size_t)REGIONS * PAGE, (size_t)REGIONS * PAGE, make);
    for (unsigned i = 0; i < REGIONS; i++)
        mapping_allow(&regions[i]);
    fill_hole(hole);
}

/* The hole is used again: no other has its length, as all others are a page shorter. */
static void a_region_that_is_gone_is_not_avoided(void **state)
{
    static struct mapping_avoided region;
    char *around = mmap(NULL, AROUND, PROT_NONE, anonymous, -1, 0), *hole = around + PAGE;
    munmap(hole, AROUND - 2 * PAGE);
    mapping_avoid(&region, hole, AROUND);
    char *made = make(AROUND - 2 * PAGE);
    assert_ptr_not_equal(made, hole);
    munmap(made, AROUND - 2 * PAGE);
    mapping_allow(&region);
    mapping_allow(&region);
    made = make(AROUND - 2 * PAGE);
    assert_ptr_equal(made, hole);
    munmap(around, AROUND);
}

/* A region on demand of all addresses, as one call registers it or with its bounds. */
static void all_addresses_cannot_be_avoided(void **state)
{
    static struct mapping_avoided all, nearly, none;
    mapping_avoid(&all, NULL, SIZE_MAX);
    mapping_avoid(&nearly, (void *)PAGE, SIZE_MAX >> 17);
    mapping_avoid(&none, (void *)PAGE, 0);
    char *made = make(PAGE);
    munmap(made, PAGE);
    mapping_allow(&all);
    mapping_allow(&nearly);
    mapping_allow(&none);
}

static void a_refusal_of_the_kernel_is_handed_on(void **state)
{
    errno = 0;
    assert_ptr_equal(mapping_make(0, PROT_READ, anonymous, -1, 0), MAP_FAILED);
    assert_int_equal(errno, EINVAL);
    assert_ptr_equal(mapping_make(PAGE, PROT_READ, MAP_SHARED, -1, 0), MAP_FAILED);
    assert_int_equal(errno, EBADF);
}

static void blocks_of_any_size_are_memory(void **state)
{
    static const size_t sizes[] = {0, 1, 64, 100, 5000, 128 << 10, (128 << 10) - 1, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = mapping_allocate(64, sizes[i]);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        memset(block, 1, sizes[i]);
        mapping_free(block, sizes[i]);
    }
    mapping_free(NULL, 1);
    mapping_free(NULL, 1 << 20);
}

static char *allocate(size_t size)
{
    return mapping_allocate(64, size);
}

static void a_large_block_is_in_no_region(void **state)
{
    static struct mapping_avoided region;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* blocks come from the sanitizer */
#endif
    char *hole = make_hole(HOLE);
    mapping_avoid(&region, hole, HOLE);
    expect_elsewhere(hole, HOLE, HOLE / 2, allocate);
    mapping_allow(&region);
    fill_hole(hole);
}

TESTS(no_map_is_made_in_the_hole_of_a_region,
      a_map_does_not_reach_into_a_region,
      many_regions_side_by_side_are_avoided,
      a_region_that_is_gone_is_not_avoided,
      all_addresses_cannot_be_avoided,
      a_refusal_of_the_kernel_is_handed_on,
      blocks_of_any_size_are_memory,
      a_large_block_is_in_no_region)
