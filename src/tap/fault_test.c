#include "tap/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char why[512];

static bool parses(const char *text, struct fault_plan *plan)
{
    *why = 0;
    return fault_parse(text, plan, why, sizeof why);
}

static void a_list_is_read(void **state)
{
    struct fault_plan plan;
    assert_true(parses("drop=1%,dup=0.1%,reorder=2%,delay=1ms±0.5ms,corrupt=100%,seed=7", &plan));
    assert_int_equal(plan.drop, FAULT_ALWAYS / 100);
    assert_int_equal(plan.duplicate, FAULT_ALWAYS / 1000);
    assert_int_equal(plan.reorder, FAULT_ALWAYS / 50);
    assert_int_equal(plan.corrupt, FAULT_ALWAYS);
    assert_int_equal(plan.delay, NANOS_MILLISECOND);
    assert_int_equal(plan.jitter, NANOS_MILLISECOND / 2);
    assert_int_equal(plan.seed, 7);
    assert_true(parses("delay=10us+-1us", &plan));
    assert_int_equal(plan.delay, 10 * NANOS_MICROSECOND);
    assert_int_equal(plan.jitter, NANOS_MICROSECOND);
    assert_int_equal(plan.drop, 0);
}

static void what_is_wrong_is_refused_with_a_sentence(void **state)
{
    static const char *const wrong[] = {
        "",
        "drop",
        "drop=",
        "drop=1",
        "drop=101%",
        "drop=-1%",
        "drop=nan%",
        "drop=1e1%",
        "drop=1.2.3%",
        "loss=1%",
        "drop=1%,",
        "drop=1%,drop=2%",
        "delay=1",
        "delay=11s",
        "delay=1ms±",
        "delay=1ms±2ms",
        "delay=1ms+2",
        "delay=1msec",
        "seed=",
        "seed=-1",
        "seed=x",
        "drop=1%%",
        "drop= 1%",
        "=1%",
        "dropp=1%",
        "delay=1ms±1ms,x",
        "delay=99999999999999999999s",
    };
    struct fault_plan plan;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (parses(wrong[i], &plan))
            fail_msg("\"%s\" was accepted", wrong[i]);
        assert_non_null(strstr(why, "drop=1%"));
    }
}

struct sums {
    unsigned drop, duplicate, reorder, corrupt;
    nanos least, most;
};

static struct sums draw_many(const struct fault_plan *plan, uint64_t stream, unsigned count)
{
    struct sums sums = {.least = NANOS_NEVER};
    for (unsigned i = 0; i < count; i++) {
        struct fault fault = fault_draw(plan, stream, i);
        sums.drop += fault.drop;
        sums.duplicate += fault.duplicate;
        sums.reorder += fault.reorder;
        sums.corrupt += fault.corrupt != 0;
        sums.least = fault.delay < sums.least ? fault.delay : sums.least;
        sums.most = fault.delay > sums.most ? fault.delay : sums.most;
        assert_in_range(fault.behind, 1, 3);
    }
    return sums;
}

/* A thousandth of frames may differ by chance: more than five standard deviations. */
static void faults_are_as_frequent_as_asked_for(void **state)
{
    enum { COUNT = 200000 };
    struct fault_plan plan;
    assert_true(parses("drop=1%,dup=10%,reorder=50%,corrupt=0.1%,delay=1ms±0.5ms,seed=3", &plan));
    struct sums sums = draw_many(&plan, 5, COUNT);
    assert_in_range(sums.drop, COUNT / 100 - COUNT / 500, COUNT / 100 + COUNT / 500);
    assert_in_range(sums.duplicate, COUNT / 10 - COUNT / 200, COUNT / 10 + COUNT / 200);
    assert_in_range(sums.reorder, COUNT / 2 - COUNT / 100, COUNT / 2 + COUNT / 100);
    assert_in_range(sums.corrupt, COUNT / 1000 - COUNT / 2000, COUNT / 1000 + COUNT / 2000);
    assert_in_range(sums.least, NANOS_MILLISECOND / 2, NANOS_MILLISECOND / 2 + NANOS_MICROSECOND);
    assert_in_range(sums.most, NANOS_MILLISECOND * 3 / 2 - NANOS_MICROSECOND, NANOS_MILLISECOND * 3 / 2);
}

static void nothing_and_everything_are_exact(void **state)
{
    struct fault_plan plan;
    assert_true(parses("seed=1", &plan));
    struct sums sums = draw_many(&plan, 0, 10000);
    assert_int_equal(sums.drop + sums.duplicate + sums.reorder + sums.corrupt + sums.most, 0);
    assert_true(parses("drop=100%,corrupt=100%", &plan));
    sums = draw_many(&plan, 0, 10000);
    assert_int_equal(sums.drop, 10000);
    assert_int_equal(sums.corrupt, 10000);
}

static bool same_drops(const struct fault_plan *a, uint64_t stream_a, const struct fault_plan *b, uint64_t stream_b)
{
    for (unsigned i = 0; i < 1000; i++)
        if (fault_draw(a, stream_a, i).drop != fault_draw(b, stream_b, i).drop)
            return false;
    return true;
}

static void the_seed_and_the_stream_decide(void **state)
{
    struct fault_plan plan, other, more;
    assert_true(parses("drop=10%,seed=7", &plan));
    assert_true(parses("drop=10%,seed=8", &other));
    assert_true(parses("drop=10%,dup=50%,reorder=3%,delay=1ms±1ms,corrupt=1%,seed=7", &more));
    assert_true(same_drops(&plan, 1, &plan, 1));
    assert_true(same_drops(&plan, 1, &more, 1)); /* other faults change nothing about this one */
    assert_false(same_drops(&plan, 1, &other, 1));
    assert_false(same_drops(&plan, 1, &plan, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read),
        cmocka_unit_test(what_is_wrong_is_refused_with_a_sentence),
        cmocka_unit_test(faults_are_as_frequent_as_asked_for),
        cmocka_unit_test(nothing_and_everything_are_exact),
        cmocka_unit_test(the_seed_and_the_stream_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
