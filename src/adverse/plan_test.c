#include "adverse/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

static char why[768];

static bool parses(const char *text, struct adverse_plan *plan)
{
    *why = 0;
    return adverse_parse(text, plan, why, sizeof why);
}

static bool is_on(const struct adverse_plan *plan, enum adverse behaviour)
{
    return plan->on >> behaviour & 1;
}

static void an_empty_list_is_what_is_on_without_being_named(void **state)
{
    struct adverse_plan plan;
    assert_true(parses("", &plan));
    assert_int_equal(plan.seed, 1);
    assert_int_equal(plan.scale, 100);
    assert_true(is_on(&plan, ADVERSE_LATE_READ) && is_on(&plan, ADVERSE_LATE_WRITE));
    assert_false(is_on(&plan, ADVERSE_WRITE_ORDER));
}

static void a_behaviour_is_named_by_its_word_or_its_number(void **state)
{
    struct adverse_plan plan, same;
    assert_true(parses("seed=7,only=3,only=write-order,scale=10%", &plan));
    assert_int_equal(plan.seed, 7);
    assert_int_equal(plan.scale, 10);
    assert_int_equal(plan.on, 1u << ADVERSE_LATE_WRITE | 1u << ADVERSE_WRITE_ORDER);
    assert_true(parses("only=late-write,only=4,scale=10%,seed=7", &same));
    assert_int_equal(same.on, plan.on);
    assert_true(parses("with=4,without=late-read", &plan));
    assert_true(is_on(&plan, ADVERSE_WRITE_ORDER) && is_on(&plan, ADVERSE_PIECES));
    assert_false(is_on(&plan, ADVERSE_LATE_READ));
}

static void a_list_shows_what_is_on(void **state)
{
    assert_true(adverse_list_shows("seed=7", ADVERSE_LATE_READ) && adverse_list_shows("with=20", ADVERSE_LATE_PORT));
    assert_false(adverse_list_shows("seed=7", ADVERSE_GID_INDEX) || adverse_list_shows("only=3", ADVERSE_LATE_READ));
    assert_false(adverse_list_shows(NULL, ADVERSE_LATE_READ) || adverse_list_shows("", ADVERSE_LATE_READ));
    assert_false(adverse_list_shows("late-read", ADVERSE_LATE_READ));
}

static void what_is_wrong_is_refused_with_a_sentence(void **state)
{
    static const char *const wrong[] = {"seed",        "seed=",     "seed=x",    "seed=7x",
                                        "seed=-1",     "only=",     "only=2000", "only=3x",
                                        "late-write",  "with=late", "scale=10",  "scale=0%",
                                        "scale=1001%", "scale=%",   "without=",  "seed=18446744073709551616",
                                        "seed=7,,",    ",",         "kind",      "only=late-write ",
                                        "ONLY=3",      "seed =7"};
    struct adverse_plan plan;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(parses(wrong[i], &plan));
        assert_non_null(strstr(why, "3 late-write"));
        assert_non_null(strstr(why, adverse_example));
        assert_int_equal(why[strlen(why) - 1], '.');
    }
}

static void a_seed_and_a_scale_stand_there_once(void **state)
{
    struct adverse_plan plan;
    assert_false(parses("seed=1,only=3,seed=2", &plan));
    assert_non_null(strstr(why, "\"seed=2\" of the adverse list is there twice."));
    assert_false(parses("scale=10%,scale=10%", &plan));
    assert_non_null(strstr(why, "\"scale=10%\" of the adverse list is there twice."));
    assert_true(parses("only=3,without=late-write", &plan)); /* in their order */
    assert_int_equal(plan.on, 0);
    assert_true(parses("without=4,with=4,without=3,without=3", &plan));
    assert_true(is_on(&plan, ADVERSE_WRITE_ORDER));
}

static void a_slip_is_seen(void **state)
{
    struct adverse_plan plan;
    assert_false(parses("only=late-wrte", &plan));
    assert_non_null(strstr(why, "names no behaviour. Did you mean \"late-write\"? A list"));
    assert_false(parses("only=sunshine", &plan));
    assert_null(strstr(why, "mean"));
}

static void a_list_without_end_is_refused(void **state)
{
    char text[4096] = "seed=1";
    struct adverse_plan plan;
    for (size_t i = 6; i + 8 < sizeof text; i += 7)
        memcpy(text + i, ",seed=1", 8);
    assert_false(parses(text, &plan));
}

TESTS(an_empty_list_is_what_is_on_without_being_named,
      a_behaviour_is_named_by_its_word_or_its_number,
      a_list_shows_what_is_on,
      what_is_wrong_is_refused_with_a_sentence,
      a_seed_and_a_scale_stand_there_once,
      a_slip_is_seen,
      a_list_without_end_is_refused)
