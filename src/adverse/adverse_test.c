/* How often a behaviour is left out. */
#include "adverse/adverse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { OBJECTS = 4096, MOST = 1 << 20 };

/* Of the delays of this turn of each object, the number of those that are 0, and of those above a quarter of the most. */
static void count(unsigned turn, unsigned *left_out, unsigned *are_long)
{
    *left_out = *are_long = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct adverse_source source = adverse_source();
        nanos delay = 0;
        for (unsigned n = 0; n < turn; n++)
            delay = adverse_delay(&source, ADVERSE_LATE_ACKS, MOST);
        *left_out += !delay;
        *are_long += delay > MOST / 4;
    }
}

static void the_first_time_of_an_object_is_seldom_left_out_and_often_long(void **state)
{
    unsigned first, later, first_long, later_long;
    assert_true(adverse_begin("seed=7,only=late-acks"));
    count(1, &first, &first_long);
    count(2, &later, &later_long);
    assert_in_range(first, OBJECTS / 24, OBJECTS / 12);    /* a sixteenth */
    assert_in_range(later, OBJECTS / 5, OBJECTS * 3 / 10); /* a quarter */
    assert_true(first_long > later_long + OBJECTS / 10);
}

static void a_behaviour_that_is_off_is_left_out(void **state)
{
    struct adverse_source source = adverse_source();
    assert_int_equal(adverse_delay(&source, ADVERSE_LATE_READ, MOST), 0);
    assert_int_equal(adverse_count(ADVERSE_LATE_READ), 0);
}

TESTS_OF(cmocka_unit_test, the_first_time_of_an_object_is_seldom_left_out_and_often_long,
                           a_behaviour_that_is_off_is_left_out)
