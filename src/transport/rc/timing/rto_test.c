/* When a requester on a network repeats before its ACK timer runs out. */
#include "transport/rc/timing/rto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"

static const nanos most = NANOS_SECOND, ms = NANOS_MILLISECOND;

/* A round trip of 3 ms is known, and at 100 ms a packet leaves. */
static struct rto start(void)
{
    struct rto rto;
    rto_start(&rto);
    rto_sent(&rto, 10, true, most, 50 * ms);
    rto_acknowledged(&rto, 11, false, most, 53 * ms);
    rto_sent(&rto, 11, true, most, 100 * ms);
    return rto;
}

static void without_a_known_round_trip_there_is_none(void **state)
{
    struct rto rto;
    rto_start(&rto);
    rto_sent(&rto, 10, true, most, 50 * ms);
    assert_true(rto.deadline == NANOS_NEVER);
}

static void two_round_trips_and_the_clocks_grain_are_waited(void **state)
{
    struct rto rto = start();
    assert_int_equal(rto.round_trip, 3 * ms);
    assert_int_equal(rto.deadline, 110 * ms);
}

static void more_packets_do_not_put_it_off(void **state)
{
    struct rto rto = start();
    rto_sent(&rto, 12, true, most, 105 * ms);
    assert_int_equal(rto.deadline, 110 * ms);
}

static void it_doubles_until_something_is_acknowledged(void **state)
{
    struct rto rto = start();
    rto_retransmitted(&rto, true, most, 110 * ms);
    assert_int_equal(rto.deadline, 130 * ms);
    rto_retransmitted(&rto, true, most, 130 * ms);
    assert_int_equal(rto.deadline, 170 * ms);
    rto_acknowledged(&rto, 12, true, most, 171 * ms);
    assert_int_equal(rto.deadline, 181 * ms);
}

static void what_was_repeated_is_not_measured(void **state)
{
    struct rto rto = start();
    rto_retransmitted(&rto, true, most, 110 * ms);
    rto_sent(&rto, 11, false, most, 110 * ms);
    rto_acknowledged(&rto, 12, false, most, 150 * ms);
    assert_int_equal(rto.round_trip, 3 * ms);
}

/* The owner's clocks may be some milliseconds apart. */
static void a_clock_that_steps_back_measures_nothing(void **state)
{
    struct rto rto = start();
    rto_acknowledged(&rto, 12, true, most, 98 * ms);
    assert_true(rto.round_trip < 3 * ms);
    assert_true(rto.deadline < 110 * ms);
}

static void it_never_outlasts_the_ack_timer(void **state)
{
    struct rto rto = start();
    for (int i = 0; i < 20; i++)
        rto_retransmitted(&rto, true, most, 110 * ms);
    assert_true(rto.deadline == NANOS_NEVER);
}

static void nothing_is_waited_for_when_all_has_arrived(void **state)
{
    struct rto rto = start();
    rto_acknowledged(&rto, 12, false, most, 105 * ms);
    assert_true(rto.deadline == NANOS_NEVER);
}

TESTS(without_a_known_round_trip_there_is_none,
      two_round_trips_and_the_clocks_grain_are_waited,
      more_packets_do_not_put_it_off,
      it_doubles_until_something_is_acknowledged,
      what_was_repeated_is_not_measured,
      a_clock_that_steps_back_measures_nothing,
      it_never_outlasts_the_ack_timer,
      nothing_is_waited_for_when_all_has_arrived)
