#include "tap/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

static char why[512];

static bool parses(const char *text, struct script *script)
{
    *why = 0;
    script->count = 0;
    return fault_parse(text, script, why, sizeof why);
}

/* The rule of this kind; there must be one. */
static const struct script_rule *rule_of(const struct script *script, enum fault_kind kind)
{
    for (unsigned i = 0; i < script->count; i++)
        if (script->rules[i].draw.fault == kind + 1)
            return &script->rules[i];
    fail_msg("there is no such rule");
    return NULL;
}

static void a_list_is_read(void **state)
{
    static struct script script;
    assert_true(parses("drop=1%,dup=0.1%,reorder=2%,delay=1ms±0.5ms,corrupt=100%,seed=7", &script));
    assert_int_equal(script.count, FAULT_KINDS);
    assert_int_equal(rule_of(&script, FAULT_DROP)->draw.share, SCRIPT_ALWAYS / 100);
    assert_int_equal(rule_of(&script, FAULT_DUPLICATE)->draw.share, SCRIPT_ALWAYS / 1000);
    assert_int_equal(rule_of(&script, FAULT_REORDER)->draw.share, SCRIPT_ALWAYS / 50);
    assert_int_equal(rule_of(&script, FAULT_CORRUPT)->draw.share, SCRIPT_ALWAYS);
    assert_int_equal(rule_of(&script, FAULT_DELAY)->delay, NANOS_MILLISECOND);
    assert_int_equal(rule_of(&script, FAULT_DELAY)->draw.spread, NANOS_MILLISECOND / 2);
    for (unsigned i = 0; i < script.count; i++) {
        assert_true(script.rules[i].draw.seeded && script.rules[i].draw.seed == 7 && !script.rules[i].line);
        assert_true(script.rules[i].calls[SCRIPT_packet]);
        assert_int_equal(script.rules[i].calls[SCRIPT_message], script.rules[i].draw.fault != FAULT_DELAY + 1 &&
                                                                    script.rules[i].draw.fault != FAULT_REORDER + 1);
    }
    assert_string_equal(rule_of(&script, FAULT_DROP)->text, "fault drop=1%");
    assert_true(parses("delay=10us+-1us", &script));
    assert_int_equal(script.count, 1);
    assert_int_equal(script.rules[0].delay, 10 * NANOS_MICROSECOND);
    assert_int_equal(script.rules[0].draw.spread, NANOS_MICROSECOND);
    assert_true(script.rules[0].draw.seeded && !script.rules[0].draw.seed); /* the same in each run */
}

/* The list is read in all forms that it has ever had. */
static void all_forms_are_read(void **state)
{
    static const char *const lists[] = {"seed=1",
                                        "seed=08",
                                        "delay=0ms",
                                        "drop=.5%",
                                        "drop=0%,seed=18446744073709551615",
                                        "delay=10s±10s",
                                        "delay=1µs",
                                        "delay=1µs±1ns",
                                        "dup=100.00%,delay=1s+-0s"};
    static struct script script;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!parses(lists[i], &script))
            fail_msg("%s", why);
    assert_true(parses("seed=010,delay=1.5µs±1µs", &script));
    assert_int_equal(script.rules[0].draw.seed, 10);
    assert_int_equal(script.rules[0].delay, 1500);
    assert_int_equal(script.rules[0].draw.spread, 1000);
}

static void the_place_of_what_is_wrong_is_named(void **state)
{
    static struct script script;
    assert_false(parses("dup=1%,drop=xx", &script));
    assert_non_null(strstr(why, "The fault \"dup=1%,drop=xx\", column 13: \"xx\" is not a percentage"));
    assert_false(parses("drop=1%;dup=1%", &script));
    assert_non_null(strstr(why, "column 8: The list has ended here, and more follows."));
    assert_false(parses("drop=1%#", &script));
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
        "=1%",
        "dropp=1%",
        "delay=1ms±1ms,x",
        "delay=99999999999999999999s",
    };
    static struct script script;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (parses(wrong[i], &script))
            fail_msg("\"%s\" was accepted", wrong[i]);
        assert_non_null(strstr(why, "drop=1%"));
    }
}

struct sums {
    unsigned drop, duplicate, reorder, corrupt;
    nanos least, most;
};

/* Returns the fault that the rules inject into this packet of a queue pair. */
static struct fault fault_of(struct script *script, uint64_t stream, uint64_t number)
{
    struct script_verdict verdict = script_decide(
        script, &(struct script_event){.call = SCRIPT_packet, .opcode = -1, .stream = stream + 1, .number = number});
    struct fault fault = fault_draw(stream, number);
    scripted_add(&verdict, &fault);
    return fault;
}

static struct sums draw_many(struct script *script, uint64_t stream, unsigned count)
{
    struct sums sums = {.least = NANOS_NEVER};
    for (unsigned i = 1; i <= count; i++) {
        struct fault fault = fault_of(script, stream, i);
        sums.drop += fault_has(&fault, FAULT_DROP);
        sums.duplicate += fault_has(&fault, FAULT_DUPLICATE);
        sums.reorder += fault_has(&fault, FAULT_REORDER);
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
    static struct script script;
    assert_true(parses("drop=1%,dup=10%,reorder=50%,corrupt=0.1%,delay=1ms±0.5ms,seed=3", &script));
    struct sums sums = draw_many(&script, 5, COUNT);
    assert_in_range(sums.drop, COUNT / 100 - COUNT / 500, COUNT / 100 + COUNT / 500);
    assert_in_range(sums.duplicate, COUNT / 10 - COUNT / 200, COUNT / 10 + COUNT / 200);
    assert_in_range(sums.reorder, COUNT / 2 - COUNT / 100, COUNT / 2 + COUNT / 100);
    assert_in_range(sums.corrupt, COUNT / 1000 - COUNT / 2000, COUNT / 1000 + COUNT / 2000);
    assert_in_range(sums.least, NANOS_MILLISECOND / 2, NANOS_MILLISECOND / 2 + NANOS_MICROSECOND);
    assert_in_range(sums.most, NANOS_MILLISECOND * 3 / 2 - NANOS_MICROSECOND, NANOS_MILLISECOND * 3 / 2);
}

static void nothing_and_everything_are_exact(void **state)
{
    static struct script script;
    assert_true(parses("seed=1", &script));
    struct sums sums = draw_many(&script, 0, 10000);
    assert_int_equal(sums.drop + sums.duplicate + sums.reorder + sums.corrupt + sums.most, 0);
    assert_true(parses("drop=100%,corrupt=100%", &script));
    sums = draw_many(&script, 0, 10000);
    assert_int_equal(sums.drop, 10000);
    assert_int_equal(sums.corrupt, 0); /* a lost frame meets no other fault */
    assert_true(parses("corrupt=100%", &script));
    sums = draw_many(&script, 0, 10000);
    assert_int_equal(sums.corrupt, 10000);
}

static bool same_drops(struct script *a, uint64_t stream_a, struct script *b, uint64_t stream_b)
{
    for (unsigned i = 1; i <= 1000; i++) {
        struct fault one = fault_of(a, stream_a, i), other = fault_of(b, stream_b, i);
        if (fault_has(&one, FAULT_DROP) != fault_has(&other, FAULT_DROP))
            return false;
    }
    return true;
}

static void the_seed_and_the_stream_decide(void **state)
{
    static struct script first, other, more;
    assert_true(parses("drop=10%,seed=7", &first));
    assert_true(parses("drop=10%,seed=8", &other));
    assert_true(parses("dup=50%,reorder=3%,delay=1ms±1ms,corrupt=1%,drop=10%,seed=7", &more));
    assert_true(same_drops(&first, 1, &first, 1));
    assert_true(same_drops(&first, 1, &more, 1)); /* other faults change nothing about this one */
    assert_false(same_drops(&first, 1, &other, 1));
    assert_false(same_drops(&first, 1, &first, 2));
}

static const char *described(const char *list)
{
    static char words[96];
    static struct script script;
    assert_true(parses(list, &script));
    struct fault fault = fault_of(&script, 0, 1);
    return fault_describe(&fault, words, sizeof words);
}

static void what_happened_is_said(void **state)
{
    assert_null(described("seed=1"));
    assert_string_equal(described("drop=100%,dup=100%,delay=1s"), "fault: dropped"); /* it meets nothing else */
    assert_string_equal(described("dup=100%,reorder=100%,delay=2ms"), "fault: repeated reordered delayed (2.000 ms)");
    assert_string_equal(described("dup=100%,corrupt=100%"), "fault: repeated corrupted");
}

/* The message that refuses a list shows a valid one, and so does the help. */
static void the_example_is_right(void **state)
{
    static struct script script;
    char list[256];
    size_t used = 0;
    for (const char *at = fault_example; *at; at++)
        if (*at != ' ')
            list[used++] = *at;
    list[used] = 0;
    assert_true(parses(list, &script));
    assert_false(parses("loss=1%", &script));
    assert_non_null(strstr(why, list));
    assert_non_null(strstr(why, "is not one of drop, dup, reorder, delay, corrupt, and seed"));
}

TESTS(a_list_is_read,
      all_forms_are_read,
      the_place_of_what_is_wrong_is_named,
      what_is_wrong_is_refused_with_a_sentence,
      faults_are_as_frequent_as_asked_for,
      nothing_and_everything_are_exact,
      the_seed_and_the_stream_decide,
      what_happened_is_said,
      the_example_is_right)
