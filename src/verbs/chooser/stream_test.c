#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "verbs/chooser/stream.h"

enum { ACCESS = 500, PAUSE = 100 };

static nanos now = 1000000, idle;
static unsigned asked; /* for the time */

static nanos clock(void)
{
    asked++;
    return now;
}

/* All the time is the thread's own except `idle`, which is others'. */
static nanos busy(void)
{
    return now - idle;
}

/* Does a WRITE after this pause; true: through the ring. */
static bool write_after(struct stream *stream, nanos pause, uint32_t psn)
{
    now += pause;
    if (stream_takes_ring(stream, 8, psn, clock, busy))
        return true;
    now += ACCESS;
    stream_went(stream, 1, clock);
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

/* Each reading of the clock costs a fiftieth of a short access. */
static void the_clock_is_seldom_read(void **state)
{
    enum { WRITES = 16000 };
    struct stream stream = {0};
    asked = 0;
    assert_int_equal(direct_before_ring(&stream, ACCESS, WRITES), WRITES);
    assert_in_range(asked, WRITES / STREAM_WINDOW, 2 * WRITES / STREAM_WINDOW + 2);
}

/* Bursts of the least number that is looked at, or more; the answer takes as long as they do. */
static void bursts_that_are_answered_stay_direct(void **state)
{
    for (unsigned together = 1; together < 4 * STREAM_BEGINS; together = together * 2 + 1) {
        struct stream stream = {0};
        for (unsigned i = 0; i < 10000; i++)
            if (write_after(&stream, i % together ? 0 : (nanos)together * ACCESS, 0))
                assert_true(together >= STREAM_BEGINS);
    }
}

static void a_stream_tries_the_ring(void **state)
{
    struct stream stream = {0};
    assert_int_equal(direct_before_ring(&stream, PAUSE, 10000), STREAM_BEGINS);
}

static void a_faster_ring_is_kept_and_a_slower_one_is_not(void **state)
{
    struct stream stream = {0};
    uint32_t psn = 0xfffff0; /* it wraps around */
    while (!write_after(&stream, PAUSE, psn))
        ;
    for (int i = 0; i < 10 * STREAM_ENOUGH / 100; i++) {
        psn = (psn + 100) & 0xffffff;
        assert_true(write_after(&stream, (nanos)100 * (ACCESS + PAUSE) / 2, psn));
    }
    for (int32_t again = STREAM_AGAIN; again <= 4 * STREAM_AGAIN; again *= 2) {
        int drains = 0;
        do
            psn = (psn + 100) & 0xffffff;
        while (write_after(&stream, (nanos)100 * (ACCESS + PAUSE) * 2, psn) && drains++ < 1000);
        assert_true(drains > 1 && drains < 2 * STREAM_ENOUGH / 100);
        int32_t direct = (int32_t)direct_before_ring(&stream, PAUSE, 100000);
        assert_true(direct >= again - 1 && direct < again + 2 * STREAM_BEGINS);
        psn = 0;
    }
}

/* The thread that takes from the ring is woken first. */
static void a_slow_beginning_is_forgiven(void **state)
{
    struct stream stream = {0};
    uint32_t psn = 0;
    while (!write_after(&stream, PAUSE, psn))
        ;
    assert_true(write_after(&stream, stream_grace / 2, psn += 1));
    for (int i = 0; i < 1000; i++)
        assert_true(write_after(&stream, (nanos)100 * (ACCESS + PAUSE) / 4, psn += 100));
}

static void a_ring_that_stands_is_given_up_at_once(void **state)
{
    struct stream stream = {0};
    while (!write_after(&stream, PAUSE, 0))
        ;
    assert_false(write_after(&stream, stream_grace + 1, 1));
}

/* The measure may have been taken while another thread had the processor. */
static void the_direct_way_is_measured_anew(void **state)
{
    struct stream stream = {0};
    uint32_t psn = 0;
    while (!write_after(&stream, PAUSE, psn))
        ;
    unsigned trials = 0;
    while (write_after(&stream, STREAM_ENOUGH, psn += STREAM_ENOUGH) && trials < 10000)
        trials++;
    assert_int_equal(trials, STREAM_TRIALS - 1);
    assert_true(direct_before_ring(&stream, PAUSE, 10000) <= STREAM_BEGINS + 1);
}

static void a_ring_that_carried_few_says_nothing(void **state)
{
    struct stream stream = {0};
    while (!write_after(&stream, PAUSE, 5))
        ;
    assert_false(write_after(&stream, stream_longest, 6));
}

/* The thread waits for others' work on its processor between its packets. */
static void what_others_do_meanwhile_does_not_count(void **state)
{
    struct stream stream = {0};
    uint32_t psn = 0;
    while (!write_after(&stream, PAUSE, psn))
        ;
    for (int i = 0; i < 1000; i++) {
        idle += 10 * stream_longest;
        assert_true(write_after(&stream, 10 * stream_longest + (nanos)100 * (ACCESS + PAUSE) / 2, psn += 100));
    }
}

static void those_of_a_list_count_each(void **state)
{
    struct stream stream = {0};
    for (int i = 0; i < STREAM_BEGINS / 16; i++) {
        now += PAUSE;
        assert_false(stream_takes_ring(&stream, 8, 0, clock, busy));
        now += ACCESS;
        stream_went(&stream, 16, clock);
    }
    now += PAUSE;
    assert_true(stream_takes_ring(&stream, 8, 0, clock, busy));
    assert_true(stream.each < ACCESS / 8);
}

static void long_ones_are_direct(void **state)
{
    struct stream stream = {0};
    direct_before_ring(&stream, PAUSE, STREAM_BEGINS);
    assert_false(stream_takes_ring(&stream, STREAM_LENGTH_MAX + 1, 0, clock, busy));
}

TESTS(who_waits_for_answers_stays_direct,
      the_clock_is_seldom_read,
      bursts_that_are_answered_stay_direct,
      a_stream_tries_the_ring,
      a_faster_ring_is_kept_and_a_slower_one_is_not,
      a_slow_beginning_is_forgiven,
      a_ring_that_stands_is_given_up_at_once,
      the_direct_way_is_measured_anew,
      a_ring_that_carried_few_says_nothing,
      what_others_do_meanwhile_does_not_count,
      those_of_a_list_count_each,
      long_ones_are_direct)
