/* The window's rules, one by one. */
#include "transport/rc/timing/congestion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"

static struct congestion start(void)
{
    struct congestion congestion;
    congestion_start(&congestion, 10, 1000);
    return congestion;
}

/* Returns a window that has grown to 100, and has met this sign with PSNs 500 to 599 in flight. */
static struct congestion grown_that_met(enum congestion_sign sign)
{
    struct congestion congestion = start();
    while (congestion.window < 100)
        congestion_acknowledged(&congestion, 1, 0);
    congestion_met(&congestion, sign, 500, 600);
    return congestion;
}

static void a_slow_start_doubles_each_window(void **state)
{
    struct congestion congestion = start();
    assert_int_equal(congestion.window, 10);
    congestion_acknowledged(&congestion, 10, 10);
    assert_int_equal(congestion.window, 20);
    congestion_acknowledged(&congestion, 20, 30);
    assert_int_equal(congestion.window, 40);
}

static void it_never_grows_beyond_its_most(void **state)
{
    struct congestion congestion = start();
    congestion_acknowledged(&congestion, 5000, 5000);
    assert_int_equal(congestion.window, 1000);
}

static void a_gap_halves_and_then_it_grows_by_one_each_window(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_GAP);
    assert_int_equal(congestion.window, 50);
    congestion_acknowledged(&congestion, 49, 549);
    assert_int_equal(congestion.window, 50);
    congestion_acknowledged(&congestion, 1, 550);
    assert_int_equal(congestion.window, 51);
}

static void what_was_in_flight_together_counts_once(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_GAP);
    congestion_met(&congestion, CONGESTION_GAP, 550, 600);
    congestion_met(&congestion, CONGESTION_NOTIFIED, 599, 650);
    assert_int_equal(congestion.window, 50);
    congestion_acknowledged(&congestion, 1, 600);
    congestion_met(&congestion, CONGESTION_GAP, 600, 650);
    assert_int_equal(congestion.window, 25);
}

static void a_notification_takes_a_fifth(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_NOTIFIED);
    assert_int_equal(congestion.window, 80);
}

/* Notifications have no PSN, so a forger need not guess one. */
static void notifications_of_nothing_that_is_in_flight_are_ignored(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_GAP);
    congestion_acknowledged(&congestion, 1, 600);
    for (int i = 0; i < 100; i++)
        congestion_met(&congestion, CONGESTION_NOTIFIED, 600, 600);
    assert_int_equal(congestion.window, 50);
}

static void notifications_alone_leave_a_window_that_still_moves(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_GAP);
    for (uint32_t i = 10; i < 110; i++)
        congestion_met(&congestion, CONGESTION_NOTIFIED, 100 * i, 100 * i + 50);
    assert_int_equal(congestion.window, 16);
    congestion_met(&congestion, CONGESTION_GAP, 20000, 20050);
    assert_int_equal(congestion.window, 8);
    congestion_met(&congestion, CONGESTION_NOTIFIED, 20100, 20150);
    assert_int_equal(congestion.window, 8);
}

/* Otherwise a queue pair that lost packets would stay slower than others with 16 packets in the same queue. */
static void notifications_do_not_hold_a_small_window_down(void **state)
{
    struct congestion congestion = start();
    congestion_met(&congestion, CONGESTION_SILENCE, 0, 10);
    assert_int_equal(congestion.window, 4);
    for (uint32_t psn = 10; psn < 1000; psn += 10) {
        congestion_acknowledged(&congestion, 10, psn);
        congestion_met(&congestion, CONGESTION_NOTIFIED, psn, psn + 10);
        assert_true(congestion.window <= 17);
    }
    assert_int_equal(congestion.window, 16);
}

static void silence_starts_again_from_the_least(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_SILENCE);
    assert_int_equal(congestion.window, 4);
    congestion_acknowledged(&congestion, 46, 546);
    assert_int_equal(congestion.window, 50);
    congestion_acknowledged(&congestion, 49, 595);
    assert_int_equal(congestion.window, 50);
}

static void it_never_closes(void **state)
{
    struct congestion congestion = start();
    for (uint32_t i = 0; i < 100; i++)
        congestion_met(&congestion, CONGESTION_GAP, 100 * i, 100 * i + 50);
    assert_int_equal(congestion.window, 4);
}

static void psns_wrap(void **state)
{
    struct congestion congestion = grown_that_met(CONGESTION_GAP);
    congestion_acknowledged(&congestion, 1, 600);
    congestion_met(&congestion, CONGESTION_GAP, 0xfffff0, 0x10);
    assert_int_equal(congestion.window, 25);
    congestion_acknowledged(&congestion, 1, 0xfffff1);
    congestion_met(&congestion, CONGESTION_GAP, 0xfffff1, 0x10);
    assert_int_equal(congestion.window, 25);
    congestion_acknowledged(&congestion, 1, 0x10);
    congestion_met(&congestion, CONGESTION_GAP, 0x10, 0x20);
    assert_int_equal(congestion.window, 12);
}

static void without_a_first_window_nothing_changes(void **state)
{
    struct congestion congestion;
    congestion_start(&congestion, 0, 65536);
    congestion_met(&congestion, CONGESTION_SILENCE, 0, 100);
    assert_int_equal(congestion.window, 65536);
    congestion_acknowledged(&congestion, 100, 100);
    assert_int_equal(congestion.window, 65536);
}

TESTS(a_slow_start_doubles_each_window,
      it_never_grows_beyond_its_most,
      a_gap_halves_and_then_it_grows_by_one_each_window,
      what_was_in_flight_together_counts_once,
      a_notification_takes_a_fifth,
      notifications_of_nothing_that_is_in_flight_are_ignored,
      notifications_alone_leave_a_window_that_still_moves,
      notifications_do_not_hold_a_small_window_down,
      silence_starts_again_from_the_least,
      it_never_closes,
      psns_wrap,
      without_a_first_window_nothing_changes)
