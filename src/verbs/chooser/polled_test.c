#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "verbs/chooser/polled.h"

enum { DIRECT = 1600, RING = 400, SLOW_RING = 3000, LATE = 1000000 };

static nanos now = 1000000;
static unsigned asked;

static nanos clock(void)
{
    asked++;
    return now;
}

/* A peer, and the program that sends works to it. */
struct rig {
    struct polled polled;
    uint32_t work, attention;
    nanos ring; /* the time of a work through the ring */
};

static struct rig awake_peer(void)
{
    return (struct rig){.work = UINT32_MAX - 100, .attention = 6, .ring = RING};
}

/* Does the next work; true: through the ring. */
static bool one_work(struct rig *rig)
{
    bool ring = polled_takes_ring(&rig->polled, rig->work++, rig->attention, clock);
    now += ring ? rig->ring : DIRECT;
    return ring;
}

static uint32_t through_ring(struct rig *rig, uint32_t works)
{
    uint32_t count = 0;
    for (; works; works--)
        count += one_work(rig);
    return count;
}

/* The works without a packet before the next one through the ring. */
static uint32_t direct_before_ring(struct rig *rig, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && !one_work(rig))
        count++;
    return count;
}

static void sleep_once(struct rig *rig)
{
    rig->attention += 2;
}

static void a_peer_that_polls_gets_packets(void **state)
{
    struct rig rig = awake_peer();
    assert_in_range(direct_before_ring(&rig, 1000), POLLED_FIRST, POLLED_FIRST + 2);
    assert_int_equal(through_ring(&rig, 10000), 10000);
}

static void a_peer_that_sleeps_gets_none(void **state)
{
    struct rig rig = awake_peer();
    rig.attention |= 1;
    assert_int_equal(through_ring(&rig, 10000), 0);
    asked = 0;
    assert_int_equal(through_ring(&rig, 10000), 0);
    assert_int_equal(asked, 0);
}

/* The peer sleeps like its helper, which looks on for a moment after each work. */
static void a_peer_that_sleeps_now_and_then_gets_none(void **state)
{
    struct rig rig = awake_peer();
    for (int i = 0; i < 1000; i++, sleep_once(&rig))
        assert_int_equal(through_ring(&rig, POLLED_FIRST - 1), 0);
}

/* When the peer is seen to have slept, the next work is done without a packet at once. */
static void one_work_is_late_when_a_poller_stops(void **state)
{
    struct rig rig = awake_peer();
    direct_before_ring(&rig, 1000);
    through_ring(&rig, 100);
    sleep_once(&rig);
    assert_false(one_work(&rig));
    rig = awake_peer();
    direct_before_ring(&rig, 1000);
    rig.attention |= 1;
    assert_false(one_work(&rig));
}

/* Late works slow a program that alternates by at most a tenth, at any number of works between two sleeps. */
static void a_program_that_alternates_loses_little(void **state)
{
    enum { WORKS = 4000000 };
    for (uint32_t between = 70; between < 40000; between = between * 3 / 2) {
        struct rig rig = awake_peer();
        nanos began = now;
        for (uint32_t done = 0; done < WORKS; done += between, sleep_once(&rig))
            if (through_ring(&rig, between) && rig.polled.rings)
                now += LATE;
        assert_true(now - began < (nanos)WORKS * DIRECT / 100 * 110);
    }
}

static void a_long_way_through_the_ring_pays_for_a_late_work(void **state)
{
    struct rig rig = awake_peer();
    for (int i = 0; i < 20; i++, sleep_once(&rig)) {
        assert_in_range(direct_before_ring(&rig, 1000), POLLED_FIRST, POLLED_FIRST + 2);
        assert_int_equal(through_ring(&rig, POLLED_PAYS), POLLED_PAYS);
    }
}

/* Ten times what was lost; nothing is lost where the peer has slept and is polled again at once. */
static void what_a_late_work_took_is_paid_for_first(void **state)
{
    struct rig rig = awake_peer();
    direct_before_ring(&rig, 1000);
    for (nanos late = 0; late <= 4 * NANOS_MILLISECOND; late = late * 2 + 100000) {
        through_ring(&rig, 100);
        now += late;
        sleep_once(&rig);
        uint32_t expected = (uint32_t)(late * 10 / DIRECT), again = direct_before_ring(&rig, POLLED_MOST);
        assert_in_range(again, late ? expected / 10 * 9 : POLLED_FIRST, expected + POLLED_FIRST + 2);
    }
}

static void a_pause_is_not_taken_for_more(void **state)
{
    struct rig rig = awake_peer();
    direct_before_ring(&rig, 1000);
    through_ring(&rig, 100);
    now += NANOS_SECOND;
    sleep_once(&rig);
    assert_in_range(direct_before_ring(&rig, POLLED_MOST), 1000, 10 * polled_late_most / DIRECT + POLLED_FIRST);
}

/* A slower ring is left though the peer does not sleep. */
static void a_ring_that_is_slower_is_left(void **state)
{
    struct rig rig = awake_peer();
    rig.ring = SLOW_RING;
    for (uint32_t again = POLLED_FIRST; again < POLLED_MOST;
         again = again == POLLED_FIRST ? POLLED_AFTER_SLOW : 2 * again) {
        assert_in_range(direct_before_ring(&rig, POLLED_MOST), again - POLLED_WINDOW, again + POLLED_WINDOW);
        uint32_t tried = 0;
        while (one_work(&rig))
            tried++;
        assert_in_range(tried, POLLED_WINDOW, 2 * POLLED_LOSS * POLLED_WINDOW);
    }
}

/* The program pauses in one window of three, on either way; once it left the ring for that, both pauses are known. */
static void pauses_of_the_program_do_not_count_against_the_ring(void **state)
{
    enum { TIMES = 10000 };
    struct rig rig = awake_peer();
    uint32_t ring = 0;
    for (int i = 0; i < TIMES; i++) {
        ring += through_ring(&rig, 3 * POLLED_WINDOW);
        now += NANOS_MILLISECOND;
    }
    assert_true(ring > TIMES / 10 * 9 * 3 * POLLED_WINDOW);
}

static void time_with_other_work_is_not_measured(void **state)
{
    struct rig rig = awake_peer();
    direct_before_ring(&rig, 1000);
    for (int i = 0; i < 10000; i++) {
        assert_true(one_work(&rig));
        rig.work++;
        now += NANOS_MILLISECOND;
        polled_pauses(&rig.polled);
    }
}

/* Others have the processor for as long as some hundred works take, and as often whichever the way. */
static void a_busy_machine_does_not_count_against_the_ring(void **state)
{
    enum { WORKS = 1000000 };
    struct rig rig = awake_peer();
    uint32_t ring = 0;
    for (int i = 0; i < WORKS; i++) {
        ring += one_work(&rig);
        now += i % 5000 == 0 ? 3 * NANOS_MILLISECOND : 0;
    }
    assert_true(ring > WORKS / 10 * 9);
}

/* Most of its windows are fast, and yet all of them together take longer, as the peer has no processor now and then. */
static void a_ring_that_stalls_is_left(void **state)
{
    enum { WORKS = 1000000 };
    struct rig rig = awake_peer();
    uint32_t ring = 0;
    for (int i = 0; i < WORKS; i++) {
        bool through = one_work(&rig);
        ring += through;
        now += through && i % 300 == 0 ? 3 * NANOS_MILLISECOND : 0;
    }
    assert_true(ring < WORKS / 10);
}

static void a_work_that_is_asked_about_again_goes_the_same_way(void **state)
{
    struct rig rig = awake_peer();
    for (int i = 0; i < 10000; i++) {
        assert_false(polled_takes_ring(&rig.polled, 5, rig.attention, clock));
    }
    direct_before_ring(&rig, 1000);
    for (int i = 0; i < 10000; i++)
        assert_true(polled_takes_ring(&rig.polled, rig.work, rig.attention, clock));
}

TESTS(a_peer_that_polls_gets_packets,
      a_peer_that_sleeps_gets_none,
      a_peer_that_sleeps_now_and_then_gets_none,
      one_work_is_late_when_a_poller_stops,
      a_program_that_alternates_loses_little,
      a_long_way_through_the_ring_pays_for_a_late_work,
      what_a_late_work_took_is_paid_for_first,
      a_pause_is_not_taken_for_more,
      a_ring_that_is_slower_is_left,
      pauses_of_the_program_do_not_count_against_the_ring,
      time_with_other_work_is_not_measured,
      a_busy_machine_does_not_count_against_the_ring,
      a_ring_that_stalls_is_left,
      a_work_that_is_asked_about_again_goes_the_same_way)
