/* Waits are shortened, and stay in their order. */
#include "base/time_scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int give_back(void **state)
{
    time_scale_set(TIME_SCALE_WHOLE);
    return 0;
}

static void without_a_scale_waits_are_as_they_were(void **state)
{
    for (unsigned i = 0; i < 43; i++)
        assert_true(time_scaled(4096ull << (i & 31)) == 4096ull << (i & 31));
}

static void a_hundredth_of_what_is_long(void **state)
{
    time_scale_set(TIME_SCALE_WHOLE / 100);
    assert_true(time_scaled(0) == 0);
    assert_true(time_scaled(TIME_SCALE_FROM) == TIME_SCALE_FROM);
    assert_true(time_scaled(104 * NANOS_MILLISECOND) == 5 * NANOS_MILLISECOND);
    assert_true(time_scaled(TIME_SCALE_FROM + 9999 * NANOS_SECOND) == TIME_SCALE_FROM + 9999 * NANOS_SECOND / 100);
}

/* Also of those that are next to each other in a list of codes, and of the longest. */
static void the_longer_wait_stays_the_longer_one(void **state)
{
    for (uint32_t scale = 100; scale <= TIME_SCALE_WHOLE; scale *= 10) {
        time_scale_set(scale);
        nanos last = 0;
        for (nanos wait = NANOS_MICROSECOND; wait < TIME_SCALE_LONGEST; wait += wait / 7 + 100 * NANOS_MICROSECOND) {
            nanos scaled = time_scaled(wait);
            assert_true(scaled > last && scaled <= wait);
            last = scaled;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_scale_waits_are_as_they_were),
        cmocka_unit_test_teardown(a_hundredth_of_what_is_long, give_back),
        cmocka_unit_test_teardown(the_longer_wait_stays_the_longer_one, give_back),
    };
    return cmocka_run_group_tests_name("time scale", tests, NULL, NULL);
}
