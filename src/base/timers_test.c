#include "base/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/random.h"

enum { TIMERS = 200 };

static nanos last;
static unsigned expirations;

static void note(struct timer *timer, nanos now)
{
    assert_true(timer->at <= now);
    assert_true(timer->at >= last);
    last = timer->at;
    expirations++;
}

static void timers_expire_in_order(void **state)
{
    struct timers timers = {NULL};
    struct timer all[TIMERS] = {{0}};
    last = expirations = 0;
    for (unsigned i = 0; i < TIMERS; i++) {
        all[i].expired = note;
        timer_set(&timers, &all[i], draw() % 1000);
    }
    for (nanos now = 0; now < 1000; now += 100)
        timers_expire(&timers, now);
    timers_expire(&timers, 1000);
    assert_int_equal(expirations, TIMERS);
    assert_true(timers_next(&timers) == NANOS_NEVER);
}

/* Beside a plain list. */
static void setting_and_stopping_in_any_order(void **state)
{
    struct timers timers = {NULL};
    struct timer all[TIMERS] = {{0}};
    for (unsigned i = 0; i < TIMERS; i++)
        all[i].expired = note;
    for (unsigned round = 0; round < 20000; round++) {
        struct timer *timer = &all[draw() % TIMERS];
        nanos first = NANOS_NEVER;
        if (draw() % 3)
            timer_set(&timers, timer, draw() % 100000);
        else
            timer_stop(&timers, timer);
        for (unsigned i = 0; i < TIMERS; i++)
            if (all[i].set && all[i].at < first)
                first = all[i].at;
        assert_true(timers_next(&timers) == first);
    }
    for (unsigned i = 0; i < TIMERS; i++)
        timer_stop(&timers, &all[i]);
    assert_true(timers_next(&timers) == NANOS_NEVER);
}

static struct timers shared;

static void set_again(struct timer *timer, nanos now)
{
    expirations++;
    if (expirations < 10)
        timer_set(&shared, timer, now + 1);
}

static void a_timer_may_set_itself_again(void **state)
{
    struct timer timer = {.expired = set_again};
    expirations = 0;
    timer_set(&shared, &timer, 5);
    timers_expire(&shared, 4);
    assert_int_equal(expirations, 0);
    for (nanos now = 5; now < 30; now++)
        timers_expire(&shared, now);
    assert_int_equal(expirations, 10);
}

TESTS(timers_expire_in_order,
      setting_and_stopping_in_any_order,
      a_timer_may_set_itself_again)
