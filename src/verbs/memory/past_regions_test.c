/* The last regions and windows that ended. */
#include "verbs/memory/past_regions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verbs/memory/rkeys.h"

static void end(uint32_t key, uint8_t kind)
{
    past_regions_note(&(struct region){.key = key, .base = 0x1000, .length = 64, .kind = kind});
}

static void a_key_that_ended_is_found_with_its_range(void **state)
{
    struct past_region found;
    char text[PAST_WORDS];
    end(0x700, REGION_MEMORY);
    assert_true(past_regions_find(0x700, &found));
    assert_int_equal(found.base, 0x1000);
    assert_int_equal(found.length, 64);
    assert_true(found.ended && !found.window);
    const char *words =
        "; key 0x700 named a memory region of 64 bytes at 0x1000, which was deregistered (ibv_dereg_mr) ";
    assert_ptr_equal(strstr(past_regions_words(0x700, text), words), text);
    assert_false(past_regions_find(0x701, &found));
    assert_string_equal(past_regions_words(0x701, text), "");
}

static void a_window_is_one(void **state)
{
    char text[PAST_WORDS];
    end(0x900, REGION_WINDOW);
    assert_non_null(strstr(past_regions_words(0x900, text), "which was deallocated (ibv_dealloc_mw) "));
}

static void the_last_64_are_kept(void **state)
{
    struct past_region found;
    for (uint32_t key = 1; key <= PAST_REGIONS + 1; key++)
        end(key << 8, REGION_MEMORY);
    assert_false(past_regions_find(1 << 8, &found));
    for (uint32_t key = 2; key <= PAST_REGIONS + 1; key++)
        assert_true(past_regions_find(key << 8, &found));
}

static void of_two_with_one_key_the_last_is_found(void **state)
{
    struct past_region found;
    end(0x700, REGION_MEMORY);
    past_regions_note(&(struct region){.key = 0x700, .base = 0x2000, .length = 32, .kind = REGION_MEMORY});
    assert_true(past_regions_find(0x700, &found));
    assert_int_equal(found.base, 0x2000);
}

static void a_child_of_a_fork_has_ended_none(void **state)
{
    struct past_region found;
    end(0x700, REGION_MEMORY);
    past_regions_forget();
    assert_false(past_regions_find(0x700, &found));
    assert_false(past_regions_find(0, &found));
}

static bool describe(uint32_t key, char text[PAST_PLACE])
{
    strcpy(text, "main (a.c:7)");
    return key == 0x700;
}

static void the_checker_adds_the_place(void **state)
{
    char text[PAST_WORDS];
    end(0x700, REGION_MEMORY);
    end(0x800, REGION_MEMORY);
    past_regions_set_places(describe);
    assert_non_null(strstr(past_regions_words(0x700, text), " ms before at main (a.c:7)"));
    assert_null(strstr(past_regions_words(0x800, text), " at main"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_key_that_ended_is_found_with_its_range),
                                       cmocka_unit_test(a_window_is_one),
                                       cmocka_unit_test(the_last_64_are_kept),
                                       cmocka_unit_test(of_two_with_one_key_the_last_is_found),
                                       cmocka_unit_test(a_child_of_a_fork_has_ended_none),
                                       cmocka_unit_test(the_checker_adds_the_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
