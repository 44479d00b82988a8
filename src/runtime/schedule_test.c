#include "runtime/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/container.h"
#include "base/testing/group.h"

enum { ALARMS = 3 };

struct alarm {
    struct schedule_timer timer;
    struct bench *bench;
    nanos again; /* the time that its callback sets; or NANOS_NEVER */
    unsigned order, calls;
};

struct bench {
    struct schedule schedule;
    struct alarm alarms[ALARMS];
    unsigned calls, woken;
};

static void wake_up(struct schedule *schedule)
{
    container_of(schedule, struct bench, schedule)->woken++;
}

static void expired(struct timer *timer, nanos now)
{
    struct alarm *alarm = container_of(timer, struct alarm, timer.timer);
    alarm->order = ++alarm->bench->calls;
    alarm->calls++;
    schedule_by(&alarm->bench->schedule, &alarm->timer, alarm->again);
}

static struct bench *begin(void)
{
    static struct bench bench;
    bench = (struct bench){.calls = 0};
    schedule_initialize(&bench.schedule, wake_up);
    for (unsigned i = 0; i < ALARMS; i++) {
        bench.alarms[i].bench = &bench;
        bench.alarms[i].again = NANOS_NEVER;
        schedule_initialize_timer(&bench.alarms[i].timer, expired);
    }
    return &bench;
}

static void set(struct bench *bench, unsigned alarm, nanos at)
{
    schedule_by(&bench->schedule, &bench->alarms[alarm].timer, at);
}

static void a_timer_expires_once_and_not_before_its_time(void **state)
{
    struct bench *bench = begin();
    set(bench, 0, 10);
    assert_int_equal(schedule_expire(&bench->schedule, 9), 10);
    assert_int_equal(bench->alarms[0].calls, 0);
    assert_true(schedule_expire(&bench->schedule, 10) == NANOS_NEVER);
    schedule_expire(&bench->schedule, 100);
    assert_int_equal(bench->alarms[0].calls, 1);
}

static void the_soonest_time_that_was_named_holds(void **state)
{
    struct bench *bench = begin();
    set(bench, 0, 20);
    set(bench, 0, 10);
    set(bench, 0, 30);
    assert_int_equal(schedule_expire(&bench->schedule, 5), 10);
    schedule_expire(&bench->schedule, 10);
    schedule_expire(&bench->schedule, 30);
    assert_int_equal(bench->alarms[0].calls, 1);
}

static void those_that_are_due_expire_in_the_order_of_their_times(void **state)
{
    struct bench *bench = begin();
    set(bench, 2, 7);
    set(bench, 0, 5);
    set(bench, 1, 6);
    schedule_expire(&bench->schedule, 9);
    assert_int_equal(bench->alarms[0].order, 1);
    assert_int_equal(bench->alarms[1].order, 2);
    assert_int_equal(bench->alarms[2].order, 3);
}

static void a_callback_that_names_a_time_in_the_past_waits_for_the_next_look(void **state)
{
    struct bench *bench = begin();
    bench->alarms[0].again = 3;
    set(bench, 0, 5);
    assert_int_equal(schedule_expire(&bench->schedule, 9), 10);
    assert_int_equal(bench->alarms[0].calls, 1);
    schedule_expire(&bench->schedule, 10);
    assert_int_equal(bench->alarms[0].calls, 2);
}

static void a_cancelled_timer_does_not_expire(void **state)
{
    struct bench *bench = begin();
    set(bench, 0, 5);
    schedule_cancel(&bench->schedule, &bench->alarms[0].timer);
    schedule_cancel(&bench->schedule, &bench->alarms[1].timer);
    assert_true(schedule_expire(&bench->schedule, 9) == NANOS_NEVER);
    assert_int_equal(bench->calls, 0);
    set(bench, 0, 11); /* and can be named again */
    schedule_expire(&bench->schedule, 11);
    assert_int_equal(bench->calls, 1);
}

/* A callback that ends another owner, whose timer is due as well. */
static void cancel_other(struct timer *timer, nanos now)
{
    struct bench *bench = container_of(timer, struct alarm, timer.timer)->bench;
    schedule_cancel(&bench->schedule, &bench->alarms[1].timer);
}

static void a_timer_that_is_due_can_still_be_cancelled(void **state)
{
    struct bench *bench = begin();
    bench->alarms[0].timer.timer.expired = cancel_other;
    set(bench, 0, 5);
    set(bench, 1, 5);
    schedule_expire(&bench->schedule, 5);
    assert_int_equal(bench->alarms[1].calls, 0);
}

static void the_helper_is_woken_for_what_is_sooner_than_its_next_look(void **state)
{
    struct bench *bench = begin();
    set(bench, 0, 50);
    assert_int_equal(bench->woken, 1);
    assert_false(schedule_is_due(&bench->schedule, 49));
    assert_true(schedule_is_due(&bench->schedule, 50));
    set(bench, 1, 60);
    assert_int_equal(bench->woken, 1);
    set(bench, 2, 40);
    assert_int_equal(bench->woken, 2);
    schedule_look_at(&bench->schedule, 20);
    set(bench, 1, 30);
    assert_int_equal(bench->woken, 2);
}

TESTS(a_timer_expires_once_and_not_before_its_time,
      the_soonest_time_that_was_named_holds,
      those_that_are_due_expire_in_the_order_of_their_times,
      a_callback_that_names_a_time_in_the_past_waits_for_the_next_look,
      a_cancelled_timer_does_not_expire,
      a_timer_that_is_due_can_still_be_cancelled,
      the_helper_is_woken_for_what_is_sooner_than_its_next_look)
