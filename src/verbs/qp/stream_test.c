#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verbs/qp/stream.h"

enum { ACCESS = 500, PAUSE = 100 };

static nanos now = 1000000;

/* One WRITE after this pause; true: it goes through the ring. */
static bool write_after(struct stream *stream, nanos pause, uint32_t psn)
{
    now += pause;
    if (stream_takes_ring(stream, 8, psn, now))
        return true;
    stream_went(stream, now, now + ACCESS);
    now += ACCESS;
    return false;
}

static unsigned direct_before_ring(struct stream *stream, nanos pause, unsigned most)
{
    unsigned count = 0;
    while (count < most && !write_after(stream, pause, 0))
        count++;
    return count;
}

static void who_waits_for_answers_stays_direct(void **state)
{
    struct stream stream = {0};
    assert_int_equal(direct_before_ring(&stream, ACCESS, 10000), 10000);
}

static void a_stream_tries_the_ring(void **state)
{
    struct stream stream = {0};
    assert_int_equal(direct_before_ring(&stream, PAUSE, 10000), STREAM_BEGINS);
}

static void a_faster_ring_is_kept_and_a_slower_one_is_not(void **state)
{
    struct stream stream = {0};
    uint32_t psn = 0xfffff0; /* it goes around */
    while (!write_after(&stream, PAUSE, psn))
        ;
    for (int i = 0; i < 10; i++) {
        psn = (psn + 100) & 0xffffff;
        assert_true(write_after(&stream, (nanos)100 * (ACCESS + PAUSE) / 2, psn));
    }
    psn = (psn + 100) & 0xffffff;
    assert_false(write_after(&stream, (nanos)100 * (ACCESS + PAUSE) * 2, psn));
    unsigned direct = direct_before_ring(&stream, PAUSE, 100000);
    assert_true(direct >= STREAM_AGAIN && direct < STREAM_AGAIN + 2 * STREAM_BEGINS);
}

static void a_ring_that_carried_few_says_nothing(void **state)
{
    struct stream stream = {0};
    while (!write_after(&stream, PAUSE, 5))
        ;
    assert_false(write_after(&stream, 10, 6));
}

static void long_ones_are_direct(void **state)
{
    struct stream stream = {0};
    direct_before_ring(&stream, PAUSE, STREAM_BEGINS);
    assert_false(stream_takes_ring(&stream, STREAM_LENGTH_MAX + 1, 0, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_answers_stays_direct),
        cmocka_unit_test(a_stream_tries_the_ring),
        cmocka_unit_test(a_faster_ring_is_kept_and_a_slower_one_is_not),
        cmocka_unit_test(a_ring_that_carried_few_says_nothing),
        cmocka_unit_test(long_ones_are_direct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
