/* Rules that are added and taken back while threads meet them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "script/parse.h"
#include "script/rules.h"

static int add(const char *text, unsigned times)
{
    struct script *more = calloc(1, sizeof *more);
    struct script_fault fault;
    for (unsigned i = 0; i < times; i++)
        assert_true(script_parse(text, more, &fault));
    int error = rules_add(more);
    free(more);
    return error;
}

static int clear(void **state)
{
    rules_clear();
    return 0;
}

static void places_are_used_again(void **state)
{
    unsigned place = rules_next_place();
    for (unsigned i = 0; i < 2 * SCRIPT_RULES_MOST; i++) {
        assert_int_equal(add("when ibv_reg_mr: error ENOMEM", 1), 0);
        assert_int_equal(rules_all()->count, 1);
        assert_int_equal(rules_all()->rules[0].place, place + i); /* numbers are not */
        assert_true(rules_is_for(SCRIPT_ibv_reg_mr));
        rules_clear();
        assert_false(rules_is_for(SCRIPT_ibv_reg_mr));
    }
    assert_int_equal(rules_next_place(), place + 2 * SCRIPT_RULES_MOST);
}

static void rules_that_hold_are_at_most_so_many(void **state)
{
    assert_int_equal(add("when ibv_reg_mr: error ENOMEM", 200), 0);
    assert_int_equal(add("when ibv_reg_mr: error ENOMEM", SCRIPT_RULES_MOST - 199), ENOSPC);
    assert_int_equal(rules_all()->count, 200);
    assert_int_equal(add("when ibv_reg_mr: error ENOMEM", SCRIPT_RULES_MOST - 200), 0);
    rules_clear();
    assert_int_equal(add("when ibv_reg_mr: error ENOMEM", SCRIPT_RULES_MOST), 0);
}

static void a_rule_begins_anew_in_its_place(void **state)
{
    const struct script_event event = {.call = SCRIPT_ibv_reg_mr};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(add("when ibv_reg_mr, once: error ENOMEM", 1), 0);
        assert_int_equal(rules_apply(event).error, ENOMEM);
        assert_int_equal(rules_apply(event).error, 0);
        rules_clear();
    }
}

/* The places are kept while a thread could still look at them. */
static void a_thread_that_reads_keeps_the_places(void **state)
{
    assert_int_equal(add("when ibv_reg_mr: error ENOMEM", 1), 0);
    unsigned read = rules_read();
    rules_clear();
    assert_int_equal(add("when ibv_reg_mr: error EIO", 1), EBUSY);
    assert_int_equal(rules_all()->count, 1);
    assert_int_equal(rules_all()->rules[0].error, ENOMEM);
    rules_read_end(read);
    assert_int_equal(add("when ibv_reg_mr: error EIO", 1), 0);
}

static void threads_that_a_child_has_not_keep_none(void **state)
{
    int status;
    assert_int_equal(add("when ibv_reg_mr: error ENOMEM", 1), 0);
    rules_clear();
    unsigned read = rules_read();
    pid_t child = fork();
    if (!child)
        _exit(add("when ibv_reg_mr: error EIO", 1));
    rules_read_end(read);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static const char *const texts[] = {
    "when ibv_query_port: set state DOWN, set active_mtu 512, error EIO",
    "when ibv_query_port: set state ACTIVE, set active_mtu 1024, error ENOMEM",
};

struct meeting_thread {
    atomic_bool stop;
    unsigned met, torn;
};

static bool is_whole(const struct script_verdict *verdict)
{
    bool first = verdict->error == EIO;
    return (first || verdict->error == ENOMEM) && verdict->changing == 2 &&
           verdict->changes[0].number == (first ? IBV_PORT_DOWN : IBV_PORT_ACTIVE) &&
           verdict->changes[1].number == (first ? IBV_MTU_512 : IBV_MTU_1024);
}

static void *meet_again_and_again(void *argument)
{
    struct meeting_thread *thread = argument;
    while (!atomic_load(&thread->stop)) {
        struct script_verdict verdict = rules_apply((struct script_event){.call = SCRIPT_ibv_query_port});
        bool any = verdict.error || verdict.changing;
        thread->met += any;
        thread->torn += any && !is_whole(&verdict);
    }
    return NULL;
}

static void no_thread_meets_half_a_rule(void **state)
{
    enum { ROUNDS = 500 };
    struct meeting_thread thread = {.stop = false};
    pthread_t running;
    assert_int_equal(add(texts[0], 1), 0);
    assert_int_equal(pthread_create(&running, NULL, meet_again_and_again, &thread), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        rules_clear();
        while (add(texts[i % 2], 1) == EBUSY)
            ;
    }
    atomic_store(&thread.stop, true);
    pthread_join(running, NULL);
    assert_int_equal(thread.torn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(places_are_used_again, clear),
        cmocka_unit_test_teardown(rules_that_hold_are_at_most_so_many, clear),
        cmocka_unit_test_teardown(a_rule_begins_anew_in_its_place, clear),
        cmocka_unit_test_teardown(a_thread_that_reads_keeps_the_places, clear),
        cmocka_unit_test_teardown(threads_that_a_child_has_not_keep_none, clear),
        cmocka_unit_test_teardown(no_thread_meets_half_a_rule, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
